package event

import (
	"encoding/json"
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// leafKind is the form of a value in an attribute.
type leafKind uint8

const (
	leafNull leafKind = iota
	leafText
	leafInt
	leafFloat
	leafBool
	leafList   // of scalars, in worker.items
	leafObject // an empty one
	leafOther  // anything, in other
)

// leaf is one attribute of the stored form.
type leaf struct {
	attr     string
	kind     leafKind
	role     role
	text     string
	i        int64 // a bool as 0 or 1
	f        float64
	from, to int
	other    any
}

func (l *leaf) putTo(attrs pcommon.Map, items []leaf) {
	switch l.kind {
	case leafText:
		attrs.PutStr(l.attr, l.text)
	case leafInt:
		attrs.PutInt(l.attr, l.i)
	case leafFloat:
		attrs.PutDouble(l.attr, l.f)
	case leafBool:
		attrs.PutBool(l.attr, l.i != 0)
	case leafNull:
		attrs.PutEmpty(l.attr)
	case leafObject:
		attrs.PutEmptyMap(l.attr)
	case leafList:
		list := attrs.PutEmptySlice(l.attr)
		list.EnsureCapacity(l.to - l.from)
		for i := l.from; i < l.to; i++ {
			items[i].setTo(list.AppendEmpty())
		}
	case leafOther:
		putAny(attrs.PutEmpty(l.attr), l.other)
	}
}

// setTo writes an item of a list.
func (l *leaf) setTo(v pcommon.Value) {
	switch l.kind {
	case leafText:
		v.SetStr(l.text)
	case leafInt:
		v.SetInt(l.i)
	case leafFloat:
		v.SetDouble(l.f)
	case leafBool:
		v.SetBool(l.i != 0)
	}
}

// putAny writes a value of the view, see view.go.
func putAny(dst pcommon.Value, v any) {
	switch v := v.(type) {
	case nil:
	case string:
		dst.SetStr(v)
	case bool:
		dst.SetBool(v)
	case int64:
		dst.SetInt(v)
	case float64:
		dst.SetDouble(v)
	case json.Number:
		if n := literalOf(v); n.isInt {
			dst.SetInt(n.i)
		} else {
			dst.SetDouble(n.f)
		}
	case []any:
		list := dst.SetEmptySlice()
		list.EnsureCapacity(len(v))
		for _, item := range v {
			putAny(list.AppendEmpty(), item)
		}
	case map[string]any:
		m := dst.SetEmptyMap()
		m.EnsureCapacity(len(v))
		for _, name := range sortedNames(v) {
			putAny(m.PutEmpty(name), v[name])
		}
	default:
		dst.SetStr(fmt.Sprint(v))
	}
}
