package storetest

import (
	"context"
	"unsafe"

	"inquest/record"
	"inquest/store"
)

// Volatile returns a reader whose fields are overwritten once fn has returned,
// as a store may do: callers that keep a name or a value without copying it are
// found out each time, and not once in a hundred runs.
func Volatile(r store.RecordReader) store.RecordReader { return volatile{r} }

type volatile struct{ store.RecordReader }

// QueryRecords implements [store.RecordReader].
func (v volatile) QueryRecords(ctx context.Context, q store.RecordQuery, fn func([]record.Field) error) error {
	return v.RecordReader.QueryRecords(ctx, q, func(fields []record.Field) error {
		var kept [][]byte
		lent := func(s string) string {
			if s == "" {
				return ""
			}
			b := []byte(s)
			kept = append(kept, b)
			return unsafe.String(&b[0], len(b))
		}
		out := make([]record.Field, len(fields))
		for i, f := range fields {
			out[i] = record.Field{Name: lent(f.Name), Value: lent(f.Value)}
		}
		err := fn(out)
		for _, b := range kept {
			for i := range b {
				b[i] = '#'
			}
		}
		return err
	})
}
