package record

import "testing"

func TestParseEntity(t *testing.T) {
	f := func(in string, want Entity) {
		t.Helper()
		got, err := ParseEntity(in)
		if err != nil || got != want {
			t.Errorf("ParseEntity(%q) = %v, %v, want %v", in, got, err, want)
		}
		if back, err := ParseEntity(got.String()); err != nil || back != got {
			t.Errorf("ParseEntity(%q) = %v, %v, want %v", got.String(), back, err, got)
		}
	}
	f("cart", Entity{Kind: EntityService, Name: "cart"})
	f("pod:cart-1", Entity{Kind: EntityPod, Name: "cart-1"})
	f("gpu:n1/GPU-7", Entity{Kind: EntityGPU, Of: "n1", Name: "GPU-7"})
	f("operation:cart/GET /x", Entity{Kind: EntityOperation, Of: "cart", Name: "GET /x"})
	f("gpu:GPU-7", Entity{Kind: EntityGPU, Name: "GPU-7"})

	for _, bad := range []string{"", "pod:", "planet:mars", "gpu:n1/"} {
		if e, err := ParseEntity(bad); err == nil {
			t.Errorf("ParseEntity(%q) = %v, want an error", bad, e)
		}
	}
}

func TestEntitiesAreOrdered(t *testing.T) {
	a, b := Entity{Kind: EntityPod, Name: "a"}, Entity{Kind: EntityPod, Name: "b"}
	if a.Compare(b) >= 0 || b.Compare(a) <= 0 || a.Compare(a) != 0 {
		t.Error("entities do not compare by name")
	}
	x, y := Edge{EdgeCalls, a, b}, Edge{EdgeRunsOn, a, b}
	if x.Compare(y) >= 0 || x.Compare(x) != 0 {
		t.Error("edges do not compare by kind")
	}
}

func FuzzParseEntity(f *testing.F) {
	f.Add("gpu:n1/GPU-7")
	f.Add(":/")
	f.Fuzz(func(t *testing.T, s string) {
		if e, err := ParseEntity(s); err == nil && e.Name == "" {
			t.Errorf("ParseEntity(%q) has no name", s)
		}
	})
}
