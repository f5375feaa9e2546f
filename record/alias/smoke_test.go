package alias

import "testing"

func TestDefault(t *testing.T) {
	tab, err := Parse("", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := tab.Attribute("gen_ai.system"); len(got) != 1 || got[0].Name != "gen_ai.provider.name" {
		t.Error(got)
	}
}
