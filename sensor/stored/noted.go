package stored

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"inquest/record"
	"inquest/sensor"
	"inquest/store"
)

var _ sensor.Noter = (*Source)(nil)

// Noted implements [sensor.Noter].
func (s *Source) Noted(ctx context.Context, r sensor.Range, fn func(sensor.Noted) error) error {
	q := fmt.Sprintf(`{%q=%q} | sort by (%s, %q) | fields %q, "service.name"`,
		record.FieldType, string(record.TypeFinding), record.FieldTime, record.FieldFinding, record.FieldFinding)
	return s.records.QueryRecords(ctx, store.RecordQuery{LogsQL: q, From: sensor.Time(r.From), To: sensor.Time(r.To)}, func(fields []record.Field) error {
		var n sensor.Noted
		for _, f := range fields {
			switch f.Name {
			case record.FieldFinding:
				if err := json.Unmarshal([]byte(f.Value), &n.Finding); err != nil {
					return fmt.Errorf("cannot read a stored finding: %w", err)
				}
			case "service.name":
				n.Service = strings.Clone(f.Value)
			}
		}
		return fn(n)
	})
}
