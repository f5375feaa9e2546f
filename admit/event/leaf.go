package event

import (
	"encoding/json"
	"fmt"
	"math"

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
	leafList   // of scalars
	leafObject // an empty one
	leafOther  // anything
)

// leaf is one attribute of the stored form. It is small, as many are copied.
type leaf struct {
	attr string
	text string
	bits uint64 // an int64, a float64, a bool as 0 or 1, a span of worker.items, or a place in worker.others
	kind leafKind
	role role
}

func intLeaf(i int64) leaf     { return leaf{kind: leafInt, bits: uint64(i)} }
func floatLeaf(f float64) leaf { return leaf{kind: leafFloat, bits: math.Float64bits(f)} }

func boolLeaf(b bool) leaf {
	if b {
		return leaf{kind: leafBool, bits: 1}
	}
	return leaf{kind: leafBool}
}

// listLeaf is a list of the items from one place up to another. An event of at
// most 4 GiB has fewer than overflow it.
func listLeaf(from, to int) leaf {
	return leaf{kind: leafList, bits: uint64(from)<<32 | uint64(to)}
}

func (w *worker) put(attrs pcommon.Map, l *leaf) {
	switch l.kind {
	case leafText:
		attrs.PutStr(l.attr, l.text)
	case leafInt:
		attrs.PutInt(l.attr, int64(l.bits))
	case leafFloat:
		attrs.PutDouble(l.attr, math.Float64frombits(l.bits))
	case leafBool:
		attrs.PutBool(l.attr, l.bits != 0)
	case leafNull:
		attrs.PutEmpty(l.attr)
	case leafObject:
		attrs.PutEmptyMap(l.attr)
	case leafList:
		items := w.items[l.bits>>32 : l.bits&math.MaxUint32]
		list := attrs.PutEmptySlice(l.attr)
		list.EnsureCapacity(len(items))
		for i := range items {
			items[i].setTo(list.AppendEmpty())
		}
	case leafOther:
		putAny(attrs.PutEmpty(l.attr), w.others[l.bits])
	}
}

// setTo writes an item of a list.
func (l *leaf) setTo(v pcommon.Value) {
	switch l.kind {
	case leafText:
		v.SetStr(l.text)
	case leafInt:
		v.SetInt(int64(l.bits))
	case leafFloat:
		v.SetDouble(math.Float64frombits(l.bits))
	case leafBool:
		v.SetBool(l.bits != 0)
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
