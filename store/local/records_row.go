package local

import (
	"cmp"
	"hash/maphash"
	"slices"

	"github.com/VictoriaMetrics/VictoriaLogs/lib/logstorage"

	"inquest/record"
)

// rowBuilder brings rows into the form in which the library packs them fastest:
// with their fields in the order of their names, as it sorts them anyway. What
// it learnt of a row is used for the next one, which mostly is alike.
type rowBuilder struct {
	fields []logstorage.Field // as they came, those of the stream first
	sorted []logstorage.Field
	row    logstorage.InsertRow

	// The stream of the last row: its fields, its description, its day and
	// whether all these are still right.
	stream    []logstorage.Field
	canonical string
	day       int64
	known     bool

	shapes [shapes]shape
}

// shape is the order of the fields of rows with the same names in the same order.
type shape struct {
	names []string
	order []int
}

// shapes bounds the shapes that are remembered; a power of two.
const shapes = 64

// add buffers row and reports whether its stream may be new.
func (r *Records) addRow(row *record.Row) (newStream bool) {
	a := &r.app
	b := &a.row
	stream := b.take(row)
	day := row.Time - row.Time%int64(day)
	if !b.known || day != b.day || !slices.Equal(b.fields[:stream], b.stream) {
		b.describe(b.fields[:stream], day)
		a.unsynced[day] = struct{}{}
		newStream = a.noteStream(b.stream, day)
	}
	b.sort()
	b.row = logstorage.InsertRow{StreamTagsCanonical: b.canonical, Timestamp: row.Time, Fields: b.sorted}
	a.rows.MustAddInsertRow(&b.row)
	return newStream
}

// take reads row's fields and returns how many make its stream.
func (b *rowBuilder) take(row *record.Row) (stream int) {
	fields, n := b.fields[:0], 0
	for _, f := range row.Stream {
		if f.Value == "" {
			continue
		}
		if n+len(f.Name)+len(f.Value) > maxStreamBytes {
			continue
		}
		n += len(f.Name) + len(f.Value)
		fields = append(fields, logstorage.Field{Name: f.Name, Value: f.Value})
	}
	stream = len(fields)
	if stream < len(row.Stream) {
		fields = appendLargeStreamFields(fields, row.Stream)
	}
	for _, f := range row.Fields {
		if f.Value != "" {
			fields = append(fields, logstorage.Field{Name: f.Name, Value: f.Value})
		}
	}
	b.fields = fields
	return stream
}

// describe remembers a stream and its description. The strings are the rows'
// own: a new one does not come at the same place while they are held.
func (b *rowBuilder) describe(stream []logstorage.Field, day int64) {
	b.stream = append(b.stream[:0], stream...)
	tags := logstorage.GetStreamTags()
	for _, f := range stream {
		tags.Add(f.Name, f.Value)
	}
	b.canonical = string(tags.MarshalCanonical(nil))
	logstorage.PutStreamTags(tags)
	b.day, b.known = day, true
}

// sort brings the fields into the library's order: the body first, which it
// keeps under an empty name, the others by name.
func (b *rowBuilder) sort() {
	h := len(b.fields)
	for i := range b.fields {
		h = h*31 + len(b.fields[i].Name)
	}
	s := &b.shapes[h&(shapes-1)]
	if !s.fits(b.fields) {
		s.learn(b.fields)
	}
	b.sorted = slices.Grow(b.sorted[:0], len(b.fields))
	for _, i := range s.order {
		b.sorted = append(b.sorted, b.fields[i])
	}
}

func (s *shape) fits(fields []logstorage.Field) bool {
	if len(fields) != len(s.names) {
		return false
	}
	for i := range fields {
		if fields[i].Name != s.names[i] {
			return false
		}
	}
	return true
}

func (s *shape) learn(fields []logstorage.Field) {
	s.names, s.order = s.names[:0], s.order[:0]
	for i := range fields {
		s.names = append(s.names, fields[i].Name)
		s.order = append(s.order, i)
	}
	slices.SortStableFunc(s.order, func(i, j int) int {
		return cmp.Compare(sortName(s.names[i]), sortName(s.names[j]))
	})
}

func sortName(name string) string {
	if name == record.FieldBody {
		return ""
	}
	return name
}

// noteStream reports whether a stream was not seen on that day before.
func (a *appender) noteStream(stream []logstorage.Field, day int64) bool {
	var h maphash.Hash
	h.SetSeed(a.seed)
	writeInt(&h, day)
	for _, f := range stream {
		writeInt(&h, int64(len(f.Name)))
		h.WriteString(f.Name)
		writeInt(&h, int64(len(f.Value)))
		h.WriteString(f.Value)
	}
	key := h.Sum64()
	if _, ok := a.streams[key]; ok {
		return false
	}
	if len(a.streams) >= maxKnownStreams {
		clear(a.streams)
	}
	a.streams[key] = struct{}{}
	return true
}
