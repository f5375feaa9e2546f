package alias

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// fields is a record of a test.
type fields map[string]string

func (f fields) Value(name string) string { return f[name] }
func (f fields) Add(name, value string)   { f[name] = value }

// derived is what a table adds to a record, sorted, as name=value.
func derived(tab *Table, sent, shared map[string]string) string {
	d := NewDeriver(tab)
	all := fields{}
	for _, name := range slices.Sorted(maps.Keys(shared)) {
		all[name] = shared[name]
		d.SeeShared(name, shared[name])
	}
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		all[name] = sent[name]
		value, text := sent[name], true
		if rest, ok := strings.CutPrefix(value, "json:"); ok {
			value, text = rest, false
			all[name] = rest
		}
		if tab.Maybe(name) {
			d.See(name, value, text)
		}
	}
	before := maps.Clone(all)
	d.Derive(all)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if _, ok := before[name]; !ok {
			out = append(out, name+"="+all[name])
		}
	}
	return strings.Join(out, " ")
}

func TestDerive(t *testing.T) {
	tab := Default()
	f := func(want string, sent ...string) {
		t.Helper()
		m := map[string]string{}
		for i := 0; i < len(sent); i += 2 {
			m[sent[i]] = sent[i+1]
		}
		if got := derived(tab, m, nil); got != want {
			t.Errorf("%v: got %s, want %s", sent, got, want)
		}
	}
	f("", "http.route", "/x", "user", "ann")
	f("gen_ai.usage.input_tokens=12", "llm.token_count.prompt", "12")
	f("gen_ai.usage.input_tokens=12", "gen_ai.usage.prompt_tokens", "12", "llm.token_count.prompt", "13") // the first in the table
	f("", "gen_ai.usage.input_tokens", "9", "gen_ai.usage.prompt_tokens", "12")                           // it is there
	f("", "llm.token_count.prompt", "many")
	f("", "llm.token_count.prompt", "1.5")
	f("gen_ai.usage.input_tokens=13", "gen_ai.usage.prompt_tokens", "many", "llm.token_count.prompt", "13") // the next that fits
	f("gen_ai.usage.input_tokens=12", "llm.token_count.prompt", "12.0")
	f("request.id=r-1", "x-request-id", "r-1", "req_id", "r-2")
	f("request.id=r-2", "x-request-id", "-", "req_id", "r-2")
	f("request.id=r-1", "http.request.header.x-request-id", `json:["r-1"]`)
	f("", "http.request.header.x-request-id", `json:["r-1","r-2"]`)
	f("", "req_id", strings.Repeat("x", 257))
	f("request.id=abc", "gen_ai.request.id", "chatcmpl-abc")
	f("request.id=abc", "gen_ai.request.id", "cmpl-abc-0")
	f("request.id=own", "gen_ai.request.id", "own")
	f("gen_ai.provider.name=azure.ai.openai", "gen_ai.system", "az.ai.openai")
	f("gen_ai.provider.name=acme", "gen_ai.system", "acme") // others are kept
	f("gen_ai.operation.name=chat", "openinference.span.kind", "llm")
	f("", "openinference.span.kind", "CHAIN") // others are dropped
	f("gen_ai.conversation.id=s-1", "session.id", "s-1", "openinference.span.kind", "CHAIN")
	f("", "session.id", "s-1")
	f("gen_ai.request.max_tokens=64 gen_ai.request.model=m gen_ai.request.temperature=0.5", "llm.invocation_parameters", `{"max_tokens":64,"temperature":0.5,"model":"m","x":null}`)
	f("", "llm.invocation_parameters", `{"max_tokens":`)
	f("gen_ai.tool.definitions="+`[{"name":"f","parameters":"{\"a\":1}"},{"name":"g"}]`,
		"llm.request.functions.0.name", "f", "llm.request.functions.0.parameters", `{"a":1}`, "llm.request.functions.1.name", "g")
	f("gen_ai.input.messages="+`[{"role":"system","parts":[{"type":"text","content":"be kind"}]},{"role":"user","parts":[{"type":"text","content":"hi"}]}]`,
		"gen_ai.prompt.0.role", "system", "gen_ai.prompt.0.content", "be kind", "gen_ai.prompt.1.role", "user", "gen_ai.prompt.1.content", "hi")
	f("", "gen_ai.prompt.99999.role", "user") // no such number
	f("gen_ai.input.messages="+`[{"role":"user","parts":[{"type":"text","content":"hi"}]}]`, "gen_ai.prompt", `[{"role":"user","content":"hi"}]`)
}

// A record's own value goes before its resource's under the same name.
func TestDeriveShared(t *testing.T) {
	tab := Default()
	f := func(want string, sent, shared map[string]string) {
		t.Helper()
		if got := derived(tab, sent, shared); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	f("user.id=res", nil, map[string]string{"user_id": "res"})
	f("user.id=own", map[string]string{"user_id": "own"}, map[string]string{"user_id": "res"})
	f("user.id=own", map[string]string{"enduser.id": "own"}, map[string]string{"user_id": "res"}) // by the table's order
}

func TestOwnTable(t *testing.T) {
	tab := mustParse(t, `
version: 1
dialects: [{name: acme, description: d}]
attributes:
  - {name: acme.wait, type: double, unit: s, description: d, from: [{name: wait_ms, dialect: acme, unit: ms}, {name: wait_ticks, dialect: acme, scale: 0.25}]}
  - {name: acme.on, type: bool, description: d, from: [{name: acme_on, dialect: acme}]}
  - {name: acme.tags, type: strings, description: d, from: [{name: acme_tags, dialect: acme}]}
  - {name: acme.deep, type: string, description: d, from: [{name: acme_json, dialect: acme, member: a.b}]}
  - {name: user.id, from: [{name: acme_user, dialect: acme}], never: [nobody]}
  - {name: gen_ai.agent.name, off: true}
`)
	f := func(want, name, value string) {
		t.Helper()
		if got := derived(tab, map[string]string{name: value}, nil); got != want {
			t.Errorf("%s=%s: got %s, want %s", name, value, got, want)
		}
	}
	f("acme.wait=0.003", "wait_ms", "3")
	f("acme.wait=0.75", "wait_ticks", "3")
	f("", "wait_ms", "NaN")
	f("acme.on=true", "acme_on", "TRUE")
	f("", "acme_on", "1")
	f(`acme.tags=["a"]`, "acme_tags", "a")
	f(`acme.tags=["a","b"]`, "acme_tags", `json:["a","b"]`)
	f("", "acme_tags", `json:[]`)
	f("acme.deep=x", "acme_json", `{"a":{"b":"x"}}`)
	f("acme.deep=1", "acme_json", `{"a":{"b":1}}`)
	f("", "acme_json", `{"a":1}`)
	f("user.id=u", "acme_user", "u")
	f("", "acme_user", "Nobody")
	f("", "acme_user", "unknown") // what was there stays
	if len(tab.Attribute("agent.name")) != 0 {
		t.Error("a name that is off is led to")
	}
}

func TestFileErrors(t *testing.T) {
	f := func(own, want string) {
		t.Helper()
		if _, err := Parse("own.yaml", []byte(own)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", own, err, want)
		}
	}
	const head = "version: 1\ndialects: [{name: acme, description: d}]\n"
	f("# nothing", "the file is empty")
	f("version: 2", "version: 1")
	f("version: 1\n---\nversion: 1", "second document")
	f("version: 1\nnames: []", "names")
	f(head+"attributes:\n  - {name: acme.x, type: string, description: d, form: []}", "form")
	f(head+"attributes:\n  - {name: Acme.X, type: string, from: [{name: acme_x, dialect: acme}]}", "own.yaml:4: \"Acme.X\" cannot be a canonical name")
	f(head+"attributes:\n  - {name: service.x, type: string, from: [{name: acme_x, dialect: acme}]}", "are taken")
	f(head+"attributes:\n  - {name: acme.x, type: text, from: [{name: acme_x, dialect: acme}]}", "type \"text\"")
	f(head+"attributes:\n  - {name: acme.x, type: string}", "from must name")
	f(head+"attributes:\n  - {name: acme.x, type: string, from: [{name: acme_x, dialect: none}]}", "own.yaml:4: acme.x from \"acme_x\": dialect \"none\" is not declared")
	f(head+"attributes:\n  - {name: acme.x, type: string, from: [{name: gen_ai.system, dialect: acme}]}", "already leads to")
	f(head+"attributes:\n  - {name: acme.x, type: string, from: [{name: acme.y, dialect: acme}]}\n  - {name: acme.y, type: string, from: [{name: acme.x, dialect: acme}]}", "come from each other")
	f(head+"attributes:\n  - {name: acme.x, type: string, from: [{name: acme.x, dialect: acme}]}", "canonical name itself")
	f(head+"attributes:\n  - {name: user.id, without: [usr_id]}", "without names \"usr_id\"")
	f(head+"attributes:\n  - {name: acme.x, type: double, unit: s, from: [{name: acme_x, dialect: acme, unit: kg}]}", "cannot be converted")
	f(head+"attributes:\n  - {name: acme.x, type: double, unit: s, from: [{name: acme_x, dialect: acme, unit: ms, scale: 2}]}", "not both")
	f(head+"attributes:\n  - {name: acme.x, type: string, from: [{name: acme_x, dialect: acme, scale: 2}]}", "are for int and double")
	f(head+"attributes:\n  - {name: acme.x, type: string, from: [{name: acme_x, dialect: acme, extract: 'x('}]}", "extract")
	f(head+"attributes:\n  - {name: acme.x, type: string, from: [{name: acme_x, dialect: acme, extract: 'x'}]}", "needs a group")
	f(head+"attributes:\n  - {name: acme.x, type: string, from: [{name: acme_x, dialect: acme, others: drop}]}", "others needs values")
	f(head+"attributes:\n  - {name: acme.x, type: objects, from: [{name: acme_x, dialect: acme}]}", "needs set")
	f(head+"attributes:\n  - {name: acme.x, type: objects, from: [{name: 'acme.<i>.x', set: x, dialect: acme}]}", "eight characters")
	f(head+"attributes:\n  - {name: acme.x, type: messages, from: [{name: 'acme_list.<i>.x', set: color, dialect: acme}]}", "set is \"color\"")
	f(head+"metrics:\n  - {name: acme.x, type: summary, from: [{name: acme_xx, dialect: acme}]}", "gauge, counter, histogram")
	f(head+"metrics:\n  - {name: acme.x, type: gauge, from: [{name: 'vllm:num_requests_running', dialect: vllm}]}", "tell the points apart with only")
	f(head+"metrics:\n  - {name: acme.x, type: gauge, from: [{name: acme_xx, dialect: acme, only: {a: []}}]}", "has no values")
	f(strings.Repeat("#", MaxFile+1), "at most")
}
