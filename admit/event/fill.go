package event

import (
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// fillFrom takes from the log record what the event did not give. A time is
// noted without its text.
func (f *facts) fillFrom(resource pcommon.Resource, lr plog.LogRecord, form form) {
	if !f.given[roleTimestamp] && timeOf(lr) != 0 {
		f.fill(roleTimestamp, "")
	}
	if !f.given[roleLevel] {
		if level := levelOf(lr); level != "" {
			f.fill(roleLevel, level)
		}
	}
	if !f.given[roleService] {
		if name := serviceOf(resource); name != "" {
			f.fill(roleService, name)
		}
	}
	if !f.given[roleTraceID] && !lr.TraceID().IsEmpty() {
		f.fill(roleTraceID, lr.TraceID().String())
	}
	if !f.given[roleSpanID] && !lr.SpanID().IsEmpty() {
		f.fill(roleSpanID, lr.SpanID().String())
	}
	if !f.given[roleEvent] {
		if name, ok := strings.CutPrefix(lr.EventName(), Prefix); ok && name != "" {
			f.fill(roleEvent, name)
		}
	}
	if !f.given[roleMessage] && form == attributeForm && lr.Body().Type() == pcommon.ValueTypeStr && lr.Body().Str() != "" {
		f.fill(roleMessage, lr.Body().Str())
	}
}

// fillView is fillFrom for the slow path: what is filled in becomes a member of
// the view.
func (f *facts) fillView(view map[string]any, resource pcommon.Resource, lr plog.LogRecord, form form) {
	for r := noRole + 1; r < numRoles; r++ {
		if value, ok := view[rolePaths[r]]; ok {
			text, _ := value.(string)
			f.give(r, text)
		}
	}
	f.fillFrom(resource, lr, form)
	for r := noRole + 1; r < numRoles; r++ {
		if !f.filled[r] {
			continue
		}
		view[rolePaths[r]] = f.value[r]
		if r == roleTimestamp {
			ns := timeOf(lr)
			view[rolePaths[r]] = time.Unix(int64(ns/1e9), int64(ns%1e9)).UTC().Format(time.RFC3339Nano)
		}
	}
}

// timeOf returns the time that a log record itself has, 0 for none.
func timeOf(lr plog.LogRecord) pcommon.Timestamp {
	if t := lr.Timestamp(); t != 0 {
		return t
	}
	return lr.ObservedTimestamp()
}

func serviceOf(resource pcommon.Resource) string {
	if v, ok := resource.Attributes().Get(attributeService); ok && v.Type() == pcommon.ValueTypeStr {
		return v.Str()
	}
	return ""
}
