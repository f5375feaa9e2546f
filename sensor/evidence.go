package sensor

import (
	"strconv"
	"strings"

	"inquest/record"
)

// Evidence leads from a measure back to the raw data.
func Evidence(k Key, r Range, items []record.Item) []record.Reference {
	ref := record.Reference{Language: record.LanguageLogsQL, From: Time(r.From), To: Time(r.To)}
	for _, it := range items {
		if !it.Time.IsZero() {
			ref.Items = append(ref.Items, it)
		}
	}
	switch k.Quadrant {
	case record.QuadrantMetrics, record.QuadrantResources:
		ref.Language = record.LanguagePromQL
		ref.Query = sampleQuery(k)
	case record.QuadrantLogs:
		ref.Query = recordQuery(record.TypeLog, k)
	default:
		ref.Query = recordQuery(record.TypeSpan, k)
	}
	return []record.Reference{ref}
}

func recordQuery(t record.Type, k Key) string {
	parts := []string{`{` + strconv.Quote(record.FieldType) + `=` + strconv.Quote(string(t))}
	service := k.Entity
	if service.Kind == record.EntityDependency {
		service = k.Peer
	}
	if service.Kind == record.EntityService {
		parts[0] += `,"service.name"=` + strconv.Quote(service.Name)
	}
	parts[0] += `}`
	if t == record.TypeSpan && k.Subject != "" && !strings.Contains(k.Subject, "*") {
		parts = append(parts, record.FieldName+":="+strconv.Quote(k.Subject))
	}
	return strings.Join(parts, " ")
}
