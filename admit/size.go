package admit

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"inquest/record"
)

// Upper bounds of what a part of a record takes in its row. They are cheap and
// coarse: text grows at most sixfold when it is escaped as JSON, a number is
// written with at most 32 digits, a field may get a prefix. Only a record that
// could be too large by them is measured.
const (
	textGrowth  = 6
	numberBound = 32
	fieldBound  = 40
	rowBound    = 1024 // fields that inquest adds
)

// extent is an upper bound of the size of a part, with what else was seen there.
type extent struct {
	size  int
	count int  // attributes
	deep  bool // some value is nested deeper than [MaxDepth]
}

func (e *extent) text(s string) { e.size += textGrowth * len(s) }

func (e *extent) attributes(m pcommon.Map) {
	e.count += m.Len()
	for name, v := range m.All() {
		e.size += textGrowth*len(name) + fieldBound
		e.value(v, 0)
	}
}

func (e *extent) value(v pcommon.Value, depth int) {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		e.size += textGrowth * len(v.Str())
	case pcommon.ValueTypeMap, pcommon.ValueTypeSlice:
		e.nested(v, depth+1)
	case pcommon.ValueTypeBytes:
		e.size += 2*v.Bytes().Len() + fieldBound
	default:
		e.size += numberBound
	}
}

func (e *extent) nested(v pcommon.Value, depth int) {
	if depth > MaxDepth {
		e.deep = true
		return
	}
	e.size += 2
	if v.Type() == pcommon.ValueTypeMap {
		for name, v := range v.Map().All() {
			e.size += textGrowth*len(name) + 4
			e.value(v, depth)
		}
		return
	}
	for _, v := range v.Slice().All() {
		e.size++
		e.value(v, depth)
	}
}

// shared is what all records of one scope have in common.
type shared struct {
	extent
	measured bool // the size is exact; else it is small and a bound
	resource pcommon.Resource
	scope    pcommon.InstrumentationScope
}

// smallBound is a bound on size below which measuring is not worth while.
const smallBound = record.MaxRowSize / 8

func sharedOf(res extent, resource pcommon.Resource, scope pcommon.InstrumentationScope) shared {
	s := shared{extent: res, resource: resource, scope: scope}
	s.size += rowBound
	s.text(scope.Name())
	s.text(scope.Version())
	s.attributes(scope.Attributes())
	if s.size > smallBound && !s.deep {
		s.size, s.measured = logSize(plog.NewLogRecord(), &s, true), true
	}
	return s
}

// logSize measures the row of a log record, whole or without what it shares.
func logSize(lr plog.LogRecord, sh *shared, whole bool) int {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	sl := rl.ScopeLogs().AppendEmpty()
	if whole {
		sh.resource.CopyTo(rl.Resource())
		sh.scope.CopyTo(sl.Scope())
	}
	lr.CopyTo(sl.LogRecords().AppendEmpty())
	return new(record.Converter).Logs(ld, 1, 0)[0].Size()
}

// rowSize measures the row of a record; see fits.
func (s *shared) rowSize(own *extent, measure func(whole bool) int) int {
	if s.measured && own.count+s.count <= record.MaxAttributes {
		// A large resource is not written anew for each of its records.
		return s.size + measure(false)
	}
	return measure(true)
}

// fits tells whether a record can be stored, going by its size and the depth of
// its values, and rejects it otherwise. measure returns the size of its row,
// whole or without what it shares with others.
func (a *admission) fits(own *extent, sh *shared, measure func(whole bool) int) bool {
	if own.deep {
		a.deep(1, "its attributes or body")
		return false
	}
	if sh.size+own.size <= record.MaxRowSize {
		return true
	}
	size := sh.rowSize(own, measure)
	if size > record.MaxRowSize {
		a.large(1, size)
		return false
	}
	return true
}

// unfit tells whether what the records of a scope have in common keeps all of
// them from being stored.
func (s *shared) unfit() bool { return s.deep || s.size > record.MaxRowSize }

// refuseAll rejects the n records of an unfit scope.
func (a *admission) refuseAll(sh *shared, n int) {
	if sh.deep {
		a.deep(n, "the attributes of its resource or scope")
	} else {
		a.large(n, sh.size)
	}
}
