package payload

import (
	"strings"
	"testing"
	"time"
)

func TestParseSum(t *testing.T) {
	sum := SumOf([]byte("x"))
	if got, err := ParseSum(sum.String()); err != nil || got != sum {
		t.Errorf("got %s, %v", got, err)
	}
	for _, text := range []string{
		"", "ab", strings.ToUpper(sum.String()), sum.String() + "0", sum.String()[:63] + "g", sum.String()[:63] + " ",
	} {
		if got, err := ParseSum(text); err == nil {
			t.Errorf("%q: got %s", text, got)
		}
	}
}

func TestParseName(t *testing.T) {
	sum := SumOf([]byte("x"))
	f := func(name string, wantRefs, wantOK bool) {
		t.Helper()
		got, refs, ok := parseName(name)
		if ok != wantOK || ok && (got != sum || refs != wantRefs) {
			t.Errorf("%q: got %s, %v, %v", name, got, refs, ok)
		}
	}
	f(contentName(sum), false, true)
	f(refsName(sum), true, true)
	f("objects/aa/bb/"+sum.String(), false, false)
	f("objects/"+sum.String(), false, false)
	f(contentName(sum)+".other", false, false)
	f("", false, false)
}

func TestOptions(t *testing.T) {
	o, err := Options{MaxAge: -1}.withDefaults()
	if err != nil || o.MaxPayload != 1<<20 || o.MaxAge != -1 || o.Now == nil {
		t.Errorf("got %+v, %v", o, err)
	}
	for _, o := range []Options{{MaxPayload: -1}, {MaxTotal: -1}, {MaxPayloads: -1}, {MaxRefs: -1}, {EraseMemory: -1}} {
		if _, err := o.withDefaults(); err == nil {
			t.Errorf("took %+v", o)
		}
	}
}

func TestUserKey(t *testing.T) {
	a := keyOf([]byte("secret"), "ann")
	if a == keyOf([]byte("secret"), "bob") || a == keyOf([]byte("other"), "ann") || a != keyOf([]byte("secret"), "ann") {
		t.Error("keys do not tell users apart")
	}
	if got, err := parseUserKey(a.String()); err != nil || got != a {
		t.Errorf("got %s, %v", got, err)
	}
	if keyOf([]byte("secret"), "").String() != "" {
		t.Error("the unknown user has a key")
	}
}

func FuzzSidecar(f *testing.F) {
	s := sidecar{Size: 3, Newest: time.Unix(1, 0).UTC(), Refs: []ref{refOf(Meta{Service: "s", Time: time.Unix(1, 0)}, keyOf(nil, "ann"))}}
	data, err := s.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte("inquest-refs 1 00000000\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := parseSidecar(data)
		if err != nil {
			return
		}
		again, err := s.encode()
		if err != nil {
			t.Fatalf("read %+v and cannot write it: %v", s, err)
		}
		if _, err := parseSidecar(again); err != nil {
			t.Fatalf("cannot read what was written: %v", err)
		}
		_ = s.info(Sum{})
		s.users()
	})
}
