package alias

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// maxComposed bounds a value that is put together from many, in bytes. The
// originals are there in any case.
const maxComposed = 256 << 10

// part is the place of an indexed name's value in its element.
type part string

// Parts of a message. An object's parts are its members, whatever their names;
// whole is an object itself.
const (
	partRole       part = "role"
	partName       part = "name"
	partFinish     part = "finish_reason"
	partText       part = "text"
	partCallID     part = "tool_call.id"
	partCallName   part = "tool_call.name"
	partCallArgs   part = "tool_call.arguments"
	partResponseID part = "tool_response.id"
	// partChat is a whole list in the form of the chat completions API, or plain text.
	partChat part = "chat"

	partWhole part = "whole"
)

func parsePart(set string, t Type, indexedName bool) (part, error) {
	p := part(set)
	if t == Objects {
		if !indexedName {
			return "", fmt.Errorf("a source of %s is an indexed name, with <i>", t)
		}
		return p, nil
	}
	switch p {
	case partChat:
		if indexedName {
			return "", fmt.Errorf("set: %s is for a whole list, not for an indexed name", p)
		}
		return p, nil
	case partRole, partName, partFinish, partText, partCallID, partCallName, partCallArgs, partResponseID:
		if !indexedName {
			return "", fmt.Errorf("set: %s is for an indexed name, with <i>", p)
		}
		return p, nil
	}
	return "", fmt.Errorf("set is %q: write one of role, name, finish_reason, text, tool_call.id, tool_call.name, tool_call.arguments, tool_response.id, chat", set)
}

// compose puts a list together from the names of one dialect, the one whose
// source stands first.
func (d *Deriver) compose(a *attribute, todo []candidate) (string, bool) {
	todo = slices.DeleteFunc(todo, func(c candidate) bool { return c.hit.value == "" || !d.holds(c.source.When) })
	if len(todo) == 0 {
		return "", false
	}
	size := 0
	dialect := todo[0].source.Dialect
	for _, c := range todo {
		if c.source.Dialect == dialect {
			size += len(c.hit.value)
		}
	}
	if size > maxComposed {
		return "", false
	}
	var list any
	if a.Type == Messages {
		list = messages(a, dialect, todo)
	} else {
		list = objects(dialect, todo)
	}
	if list == nil {
		return "", false
	}
	v, ok := encodeJSON(list)
	return v, ok && len(v) <= maxComposed
}

// objects returns the objects in the order of their numbers.
func objects(dialect string, todo []candidate) any {
	byIndex := map[int]any{}
	var order []int
	for _, c := range todo {
		if c.source.Dialect != dialect {
			continue
		}
		i := c.hit.at.i
		if _, ok := byIndex[i]; !ok {
			order = append(order, i)
			byIndex[i] = map[string]any{}
		}
		if c.source.part == partWhole {
			byIndex[i] = jsonOf(c.hit, true)
			continue
		}
		if o, ok := byIndex[i].(map[string]any); ok {
			o[string(c.source.part)] = jsonOf(c.hit, false)
		}
	}
	slices.Sort(order)
	out := make([]any, len(order))
	for k, i := range order {
		out[k] = byIndex[i]
	}
	return out
}

// jsonOf is a value as a part of a JSON text. A string that holds JSON stays a
// string, unless parse is set and it is an object or a list.
func jsonOf(h hit, parse bool) any {
	if !h.text || parse && (h.value[0] == '{' || h.value[0] == '[') {
		if json.Valid([]byte(h.value)) {
			return json.RawMessage(h.value)
		}
	}
	return h.value
}

// message is a message as OpenTelemetry's GenAI conventions shape it.
type message struct {
	Role   string        `json:"role"`
	Name   string        `json:"name,omitempty"`
	Parts  []messagePart `json:"parts"`
	Finish string        `json:"finish_reason,omitempty"`
}

type messagePart struct {
	Type      string  `json:"type"`
	ID        string  `json:"id,omitempty"`
	Name      string  `json:"name,omitempty"`
	Content   *string `json:"content,omitempty"`
	Arguments any     `json:"arguments,omitempty"`
	Response  any     `json:"response,omitempty"`
}

func textPart(s string) messagePart { return messagePart{Type: "text", Content: &s} }

// draft is a message while its parts come in.
type draft struct {
	message
	texts    map[int]string // by number, -1 for the only one
	calls    map[int]*messagePart
	response string // the id of the call that the message answers
}

func messages(a *attribute, dialect string, todo []candidate) any {
	drafts := map[int]*draft{}
	for _, c := range todo {
		if c.source.Dialect != dialect {
			continue
		}
		if c.source.part == partChat {
			return chat(c.hit.value, defaultRole(a))
		}
		m := drafts[c.hit.at.i]
		if m == nil {
			m = &draft{texts: map[int]string{}, calls: map[int]*messagePart{}}
			drafts[c.hit.at.i] = m
		}
		m.set(c.source.part, c.hit)
	}
	var out []message
	for _, i := range sortedKeys(drafts) {
		out = append(out, drafts[i].finished(defaultRole(a)))
	}
	return out
}

// defaultRole is whose message it is when nobody says.
func defaultRole(a *attribute) string {
	if strings.Contains(a.Name, "output") {
		return "assistant"
	}
	return "user"
}

func (m *draft) set(p part, h hit) {
	call := func() *messagePart {
		if m.calls[h.at.j] == nil {
			m.calls[h.at.j] = &messagePart{Type: "tool_call"}
		}
		return m.calls[h.at.j]
	}
	switch p {
	case partRole:
		m.Role = h.value
	case partName:
		m.Name = h.value
	case partFinish:
		m.Finish = h.value
	case partText:
		m.texts[h.at.j] = h.value
	case partCallID:
		call().ID = h.value
	case partCallName:
		call().Name = h.value
	case partCallArgs:
		call().Arguments = jsonOf(h, true)
	case partResponseID:
		m.response = h.value
	}
}

// finished puts the parts in their order: texts, then calls.
func (m *draft) finished(role string) message {
	if m.Role == "" {
		m.Role = role
	}
	m.Parts = []messagePart{}
	for _, j := range sortedKeys(m.texts) {
		if m.response != "" || m.Role == "tool" {
			m.Parts = append(m.Parts, messagePart{Type: "tool_call_response", ID: m.response, Response: m.texts[j]})
			continue
		}
		m.Parts = append(m.Parts, textPart(m.texts[j]))
	}
	for _, j := range sortedKeys(m.calls) {
		m.Parts = append(m.Parts, *m.calls[j])
	}
	return m.message
}

func sortedKeys[V any](m map[int]V) []int {
	keys := make([]int, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// chatMessage is a message of the chat completions API.
type chatMessage struct {
	Role       string          `json:"role"`
	Name       string          `json:"name"`
	Content    json.RawMessage `json:"content"`
	Parts      json.RawMessage `json:"parts"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
	Finish string `json:"finish_reason"`
}

// chat reads a list of messages of the chat completions API; a text that is
// none is the only message.
func chat(value, role string) any {
	var list []chatMessage
	if json.Unmarshal([]byte(value), &list) != nil || len(list) == 0 {
		return []message{{Role: role, Parts: []messagePart{textPart(value)}}}
	}
	out := make([]message, 0, len(list))
	for _, m := range list {
		if m.Parts != nil {
			return json.RawMessage(value) // it has the canonical form already
		}
		d := draft{message: message{Role: m.Role, Name: m.Name, Finish: m.Finish}, texts: map[int]string{}, calls: map[int]*messagePart{}, response: m.ToolCallID}
		for j, s := range contents(m.Content) {
			d.texts[j] = s
		}
		for j, call := range m.ToolCalls {
			p := &messagePart{Type: "tool_call", ID: call.ID, Name: call.Function.Name}
			if args := call.Function.Arguments; args != "" {
				p.Arguments = jsonOf(hit{value: args, text: true}, true)
			}
			d.calls[j] = p
		}
		out = append(out, d.finished(role))
	}
	return out
}

// contents are the texts of a message: one string, or a list of typed parts of
// which those without text are left out.
func contents(raw json.RawMessage) []string {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		if one == "" {
			return nil
		}
		return []string{one}
	}
	var parts []struct {
		Text string `json:"text"`
	}
	var out []string
	if json.Unmarshal(raw, &parts) == nil {
		for _, p := range parts {
			if p.Text != "" {
				out = append(out, p.Text)
			}
		}
	}
	return out
}
