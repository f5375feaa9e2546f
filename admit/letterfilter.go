package admit

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"inquest/record"
)

// LetterFilter chooses open dead letters. A field that is empty chooses all.
type LetterFilter struct {
	IDs                           []string
	Reason, Service, Source, Kind string
	// From (inclusive) and To (exclusive) bound when the letters came.
	From, To time.Time
}

// Query is the LogsQL query that returns the open letters of f.
func (f LetterFilter) Query() string {
	var b strings.Builder
	fmt.Fprintf(&b, "{%q=%q", record.FieldType, string(record.TypeDeadLetter))
	if f.Service != "" {
		fmt.Fprintf(&b, `,"service.name"=%q`, f.Service)
	}
	b.WriteString("}")
	// Of a letter that was erased the store may keep an empty row.
	fmt.Fprintf(&b, " %q:*", record.FieldLetterID)
	equal := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, " %q:=%q", name, value)
		}
	}
	equal(record.FieldLetterReason, f.Reason)
	equal(record.FieldLetterSource, f.Source)
	equal(record.FieldLetterKind, f.Kind)
	if len(f.IDs) > 0 {
		fmt.Fprintf(&b, " %q:in(", record.FieldLetterID)
		for i, id := range f.IDs {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(strconv.Quote(id))
		}
		b.WriteByte(')')
	}
	fmt.Fprintf(&b, " %q:!in({%q=%q} | fields %q)", record.FieldLetterID, record.FieldType, string(record.TypeDeadLetterDone), record.FieldLetterID)
	return b.String()
}

// Redriven is what became of letters that were tried again.
type Redriven struct {
	Letters int `json:"letters"` // tried
	Done    int `json:"done"`    // whose records are stored now
	Records int `json:"records"` // stored
	// Refused counts the letters that stay, by the reason that holds now.
	Refused map[string]int `json:"refused,omitempty"`
}
