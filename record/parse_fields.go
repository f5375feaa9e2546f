package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// parser reads the fields of one stored row.
type parser struct {
	head *Head
	want Type
	// own takes a field that only the wanted type has; it returns false for others.
	own func(p *parser, name, value string) bool
	err error
}

func (p *parser) parse(fields []Field) error {
	timed, typed := false, false
	for _, f := range fields {
		if f.Value == "" {
			continue
		}
		switch f.Name {
		case FieldTime:
			timed = true
			t, err := time.Parse(time.RFC3339Nano, f.Value)
			if err != nil {
				p.fail(f.Name, f.Value, "a time like 2006-01-02T15:04:05.999999999Z")
			}
			p.head.Time = t.UTC()
		case FieldType:
			typed = true
			if f.Value != string(p.want) {
				p.fail(f.Name, f.Value, string(p.want))
			}
		default:
			p.field(f.Name, f.Value)
		}
	}
	if !timed {
		p.missing(FieldTime)
	}
	if !typed {
		p.missing(FieldType)
	}
	if p.err != nil {
		return fmt.Errorf("cannot read a stored %s: %w", p.want, p.err)
	}
	return nil
}

func (p *parser) field(name, value string) {
	switch name {
	case FieldStream, FieldStreamID: // its parts are fields too
	case FieldSeq:
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			p.fail(name, value, "a number")
		}
		p.head.Seq = n
	case FieldTraceID:
		p.head.TraceID = p.id(name, value, 32)
	case FieldSpanID:
		p.head.SpanID = p.id(name, value, 16)
	case FieldScopeName:
		p.head.ScopeName = value
	case FieldScopeVersion:
		p.head.ScopeVersion = value
	case FieldDerived:
		p.head.Derived = strings.Split(value, ",")
	case FieldOverflow:
		var more map[string]string
		p.json(name, value, &more)
		for name, value := range more {
			p.attribute(name, value)
		}
	default:
		if !p.source(name, value) && !p.own(p, name, value) {
			p.attribute(name, value)
		}
	}
}

func (p *parser) source(name, value string) bool {
	s := &p.head.Source
	switch name {
	case "service.name":
		s.Service = value
	case "service.namespace":
		s.Namespace = value
	case "service.instance.id":
		s.Instance = value
	case "k8s.pod.name":
		s.Pod = value
	case "k8s.node.name":
		s.Node = value
	case "host.name":
		s.Host = value
	default:
		return false
	}
	return true
}

// attribute keeps an attribute under the name that its sender gave.
func (p *parser) attribute(name, value string) {
	if p.head.Attributes == nil {
		p.head.Attributes = make(map[string]string, 16)
	}
	if isEscaped(name) {
		name = name[len(attributePrefix):]
	}
	p.head.Attributes[name] = value
}

func (p *parser) fail(name, value, want string) {
	if p.err == nil {
		p.err = badField(name, value, want)
	}
}

func (p *parser) missing(name string) {
	if p.err == nil {
		p.err = fmt.Errorf("it has no field %s", name)
	}
}

func (p *parser) integer(name, value string, least, most int64) int64 {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < least || n > most {
		p.fail(name, value, fmt.Sprintf("a whole number from %d to %d", least, most))
		return 0
	}
	return n
}

// id checks an id: so many lower-case hexadecimal digits.
func (p *parser) id(name, value string, digits int) string {
	if len(value) != digits || strings.Trim(value, hexDigits) != "" {
		p.fail(name, value, fmt.Sprintf("%d lower-case hexadecimal digits", digits))
		return ""
	}
	return value
}

func (p *parser) json(name, value string, into any) {
	if err := decodeJSON(value, into); err != nil {
		p.fail(name, value, "the JSON that inquest writes ("+err.Error()+")")
	}
}

// badField says which field of a stored row cannot be read.
func badField(name, value, want string) error {
	const shown = 80
	if len(value) > shown {
		value = value[:shown] + "..."
	}
	return fmt.Errorf("field %s is %q, not %s", name, value, want)
}

// decodeJSON keeps numbers as they were written, since 64-bit integers do not
// fit into a float64.
func decodeJSON(value string, into any) error {
	d := json.NewDecoder(strings.NewReader(value))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("text after the end")
	}
	return nil
}
