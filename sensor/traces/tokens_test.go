package traces

import (
	"testing"
)

func TestTokenMismatch(t *testing.T) {
	f := func(client, server string, want float64) {
		t.Helper()
		c := sp("b", "a", "front", "chat", "client", 10, 60, false)
		s := sp("c", "b", "vllm", "llm_request", "server", 20, 40, false)
		c.Attributes = map[string]string{"gen_ai.usage.output_tokens": client}
		s.Attributes = map[string]string{"gen_ai.usage.output_tokens": server}
		k, n := share(t, measure(t, Tokens{}, sp("a", "", "front", "op", "server", 0, 100, false), c, s), KindTokenMismatch, "vllm")
		if k != want || n != 1 {
			t.Errorf("%s and %s: %v of %v, want %v of 1", client, server, k, n, want)
		}
	}
	f("100", "100", 0)
	f("99", "100", 0)
	f("60", "100", 1)
}

func TestTokensOfOneEndSayNothing(t *testing.T) {
	c := sp("b", "", "front", "chat", "client", 10, 60, false)
	c.Attributes = map[string]string{"gen_ai.usage.output_tokens": "7"}
	if p := measure(t, Tokens{}, c, sp("c", "b", "vllm", "llm_request", "server", 20, 40, false)); len(p.Shares) != 0 {
		t.Errorf("%v", p.Shares)
	}
	// What the caller's other span counts is of another call.
	other := sp("d", "a", "front", "chat", "internal", 70, 5, false)
	other.Attributes = c.Attributes
	s := sp("c", "b", "vllm", "llm_request", "server", 20, 40, false)
	s.Attributes = map[string]string{"gen_ai.usage.output_tokens": "9"}
	p := measure(t, Tokens{}, sp("a", "", "front", "op", "server", 0, 100, false), sp("b", "a", "front", "chat", "client", 10, 60, false), other, s)
	if len(p.Shares) != 0 {
		t.Errorf("%v", p.Shares)
	}
}
