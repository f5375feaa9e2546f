package decision

import "testing"

func builtinRecogniser(t testing.TB) *Recogniser {
	t.Helper()
	table, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(table)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
