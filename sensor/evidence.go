package sensor

import (
	"slices"
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
		if len(ref.Items) > 0 && ref.Items[0].Text != "" {
			ref.Query = ref.Items[0].Text // the very series, as its store names it
		}
	case record.QuadrantLogs:
		ref.Query = recordQuery(record.TypeLog, k)
	default:
		ref.Query = recordQuery(record.TypeSpan, k)
	}
	return []record.Reference{ref}
}

// AttributeSensor ends the names of sensors whose subjects are attributes, alone or
// with a value ("name=value").
const AttributeSensor = "/attributes"

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
	if strings.HasSuffix(k.Sensor, AttributeSensor) {
		parts = append(parts, attributeQuery(k.Subject))
		return strings.Join(parts, " ")
	}
	if t == record.TypeSpan && k.Subject != "" && !strings.Contains(k.Subject, "*") {
		parts = append(parts, record.FieldName+":="+strconv.Quote(k.Subject))
	}
	return strings.Join(parts, " ")
}

// Selector writes the PromQL selector of a series. Names that are not of the
// classic form stand in quotes, as PromQL has them.
func Selector(s *Series) string {
	names := make([]string, 0, len(s.Labels))
	for n := range s.Labels {
		names = append(names, n)
	}
	slices.Sort(names)
	var b strings.Builder
	if classic(s.Name) {
		b.WriteString(s.Name + "{")
	} else {
		b.WriteString("{" + strconv.Quote(s.Name))
		if len(names) > 0 {
			b.WriteByte(',')
		}
	}
	for i, n := range names {
		if i > 0 {
			b.WriteByte(',')
		}
		if classic(n) {
			b.WriteString(n)
		} else {
			b.WriteString(strconv.Quote(n))
		}
		b.WriteString("=" + strconv.Quote(s.Labels[n]))
	}
	b.WriteByte('}')
	return b.String()
}

func classic(name string) bool {
	for i := range len(name) {
		c := name[i]
		if c != '_' && c != ':' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// attributeQuery finds records by an attribute or its value. A list of values is
// stored as JSON, so the value is looked for as a phrase.
func attributeQuery(subject string) string {
	name, value, ok := strings.Cut(subject, "=")
	match := ":*"
	if ok && value != otherValues && value != "" {
		match = ":" + strconv.Quote(value)
	}
	out := strconv.Quote(name) + match
	if event := EventPrefix + name; Wanted(event) {
		out = "(" + out + " or " + strconv.Quote(event) + match + ")"
	}
	return out
}
