package local

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"github.com/VictoriaMetrics/VictoriaLogs/lib/logstorage"

	"inquest/record"
	"inquest/store"
)

// Limits of the library, which drops rows beyond them and only logs it.
const (
	maxRowFields  = 2000
	maxRowBytes   = 2<<20 - 1<<10 // as JSON, less its frame
	perFieldBytes = 6             // quotes, colon and comma
	// maxStreamBytes keeps a stream's description below the index's limit on one
	// item (64 KiB). Fields beyond it are stored, but do not make the stream.
	maxStreamBytes = 16 << 10
)

// appender is the state of Append, Missing and Sync, which one goroutine calls.
type appender struct {
	rows *logstorage.LogRows
	row  rowBuilder
	// adding is held while spare's rows are on their way into the library.
	adding sync.Mutex
	spare  *logstorage.LogRows
	// unsynced are the days, in ns, with rows that may be in memory only.
	unsynced map[int64]struct{}
	// streams are those known to be in the index, by day.
	seed    maphash.Seed
	streams map[uint64]struct{}
	// newIndex says that streams may be in memory only, since newRows rows.
	newIndex  bool
	newRows   int
	lastIndex time.Time
}

// When new streams are written to disk, at the latest with the next Append. The
// library writes rows after flushInterval or, merged, above some 50,000.
const (
	indexInterval = 500 * time.Millisecond
	indexRows     = 20_000
)

// maxKnownStreams bounds appender.streams; when it is reached they are found
// out anew.
const maxKnownStreams = 1 << 20

func (a *appender) init() {
	a.rows = logstorage.GetLogRows(nil, nil, nil, nil, "")
	a.spare = logstorage.GetLogRows(nil, nil, nil, nil, "")
	a.unsynced = map[int64]struct{}{}
	a.seed = maphash.MakeSeed()
	a.streams = map[uint64]struct{}{}
}

// Append implements [store.Records]. It takes the whole batch or, with an
// error, nothing of it.
func (r *Records) Append(ctx context.Context, b store.Batch) error {
	leave, err := r.gate.enter()
	if err != nil {
		return fmt.Errorf("cannot append records: %w", err)
	}
	defer leave()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("cannot append records: %w", err)
	}
	r.watchDays()
	lo, hi := r.bounds(time.Now(), 30*time.Second)
	for i := range b.Rows {
		if err := checkRow(&b.Rows[i], lo, hi); err != nil {
			return fmt.Errorf("cannot append records: entry %d, row %d: %w", b.Seq, i, err)
		}
	}
	if err := r.guard.mayAppend(); err != nil {
		return fmt.Errorf("cannot append records: %w", err)
	}
	a := &r.app
	for i := range b.Rows {
		a.newIndex = r.addRow(&b.Rows[i]) || a.newIndex
		if a.rows.NeedFlush() {
			r.addRows()
		}
	}
	r.addRows()
	if !a.newIndex {
		return nil
	}
	a.newRows += len(b.Rows)
	if a.newRows >= indexRows || time.Since(a.lastIndex) >= indexInterval {
		r.syncIndex(ctx)
	}
	return nil
}

// addRows hands the buffered rows to the library. The library packs them into
// blocks before it returns, so this goes on in the background while the next rows
// are buffered; [Records.awaitAdding] waits for it.
func (r *Records) addRows() {
	a := &r.app
	if a.rows.RowsCount() == 0 {
		return
	}
	a.adding.Lock()
	a.rows, a.spare = a.spare, a.rows
	go func() {
		defer a.adding.Unlock()
		r.storage.MustAddRows(a.spare)
		a.spare.ResetKeepSettings()
	}()
}

// awaitAdding waits until the library has all rows appended before the call.
func (r *Records) awaitAdding() {
	r.app.adding.Lock()
	defer r.app.adding.Unlock()
}

// flush makes all rows appended before the call visible.
func (r *Records) flush() {
	r.awaitAdding()
	r.storage.DebugFlush()
}

// appendLargeStreamFields adds the stream fields that addRow left out.
func appendLargeStreamFields(fields []logstorage.Field, all []record.Field) []logstorage.Field {
	i := 0
	for _, f := range all {
		switch {
		case f.Value == "":
		case i < len(fields) && fields[i].Name == f.Name:
			i++
		default:
			fields = append(fields, logstorage.Field{Name: f.Name, Value: f.Value})
		}
	}
	return fields
}

func writeInt(h *maphash.Hash, n int64) {
	var b [8]byte
	for i := range b {
		b[i] = byte(n >> (8 * i))
	}
	h.Write(b[:])
}

func checkRow(row *record.Row, lo, hi int64) error {
	if row.Time < lo || row.Time > hi {
		return fmt.Errorf("time %s is not between %s and %s: ask Bounds before",
			rfc3339(row.Time), rfc3339(lo), rfc3339(hi))
	}
	if n := len(row.Stream) + len(row.Fields); n > maxRowFields {
		return fmt.Errorf("%d fields; at most %d can be stored", n, maxRowFields)
	}
	size := 0
	for _, f := range row.Stream {
		if err := logstorage.CheckStreamFieldName(f.Name); err != nil {
			return fmt.Errorf("stream field: %w", err)
		}
		if err := checkName(f.Name); err != nil {
			return err
		}
		size += len(f.Name) + len(f.Value) + perFieldBytes
	}
	for _, f := range row.Fields {
		if err := checkName(f.Name); err != nil {
			return err
		}
		size += len(f.Name) + len(f.Value) + perFieldBytes
	}
	if size > maxRowBytes {
		return fmt.Errorf("%d bytes; at most %d can be stored", size, maxRowBytes)
	}
	return nil
}

func checkName(name string) error {
	switch {
	case name == "", name == record.FieldTime, name == record.FieldStream, name == record.FieldStreamID:
		return fmt.Errorf("field name %q is the store's own", name)
	case len(name) > record.MaxNameSize:
		return fmt.Errorf("field name %.40q… has %d bytes; at most %d can be stored", name, len(name), record.MaxNameSize)
	}
	return nil
}

func rfc3339(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339Nano) }
