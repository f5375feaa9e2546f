package kinds

import (
	"fmt"
	"strings"

	"inquest/admit/truth"
	"inquest/record"
	"inquest/sensor"
	"inquest/sensor/attributes"
	"inquest/sensor/logs"
	"inquest/sensor/resources"
)

// classes are the kinds of metric series.
func classes() []Kind {
	var out []Kind
	for _, c := range sensor.Classes() {
		out = append(out, Kind{Name: string(c), Quadrant: c.Quadrant(), Text: c.Text(), Needs: series(c)})
	}
	for _, c := range resources.Limited() {
		out = append(out, Kind{
			Name: string(c) + "_" + resources.KindAtLimit, Quadrant: record.QuadrantResources,
			Text:  "share of the time at 90 % of the limit or above: " + c.Text(),
			Needs: series(c) + ", as a share of its limit or with a series of the limit",
		})
	}
	for _, c := range resources.Growing() {
		out = append(out, Kind{
			Name: string(c) + "_" + resources.KindTrend, Quadrant: record.QuadrantResources,
			Text:  "steady growth per hour: " + c.Text(),
			Needs: series(c) + ", over baseline and incident",
		})
	}
	for _, c := range resources.Swinging() {
		out = append(out, Kind{
			Name: string(c) + "_" + resources.KindSawtooth, Quadrant: c.Quadrant(),
			Text:  "share of the variance that is a wave: " + c.Text(),
			Needs: series(c) + ", with four points a period or more",
		})
	}
	return out
}

// mostExamples bounds the names that a sentence lists.
const mostExamples = 5

// series says which metric series have a class.
func series(c sensor.Class) string {
	switch c {
	case sensor.ClassTail:
		return "a histogram of a time, with its buckets"
	case sensor.ClassOther:
		return "any metric series"
	case sensor.ClassTelemetry:
		return "a target that is scraped, or own metrics of a Collector or SDK"
	}
	words := c.Words()
	if len(words) == 0 {
		return "metric series of that meaning"
	}
	return "metric series whose names have " + strings.Join(quote(words[:min(mostExamples, len(words))]), " or ")
}

func quote(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = "`" + n + "`"
	}
	return out
}

// attributeKinds are the kinds of attributes, which are read of spans and of log
// records alike.
func attributeKinds() []Kind {
	var out []Kind
	for _, r := range attributes.Default().Readings() {
		for _, q := range []struct {
			quad record.Quadrant
			of   string
		}{{record.QuadrantTraces, "spans"}, {record.QuadrantLogs, "log records or AI events"}} {
			out = append(out, Kind{
				Name: r.Kind, Quadrant: q.quad, Text: strings.Join(r.Texts, "; ") + " (attributes of " + q.of + ")",
				Needs: "attributes of " + q.of + ": " + strings.Join(quote(r.Attributes), " or "),
			})
		}
	}
	return out
}

// topics are the kinds of what log records speak of.
func topics() []Kind {
	var out []Kind
	t := logs.Default()
	for _, name := range t.Kinds() {
		topic := strings.TrimPrefix(name, logs.KindMessage)
		out = append(out, Kind{
			Name: name, Quadrant: record.QuadrantLogs,
			Text:  "how often the log tells of " + strings.ReplaceAll(topic, "_", " "),
			Needs: "log records or Kubernetes events that hold what topics.yaml lists, such as " + strings.Join(quote(t.Examples(topic, 3)), ", "),
		})
	}
	return out
}

// checked says in which quadrants the truth check tells a reason, and what it means.
var checked = map[truth.Reason]struct {
	text  string
	quads []record.Quadrant
}{
	truth.ReasonPathSymlink:        {"the model's path leads through a link to another version", []record.Quadrant{record.QuadrantResources}},
	truth.ReasonVersionMismatch:    {"another version of the model than the one configured", []record.Quadrant{record.QuadrantLogs, record.QuadrantResources}},
	truth.ReasonFileMismatch:       {"a file of the model has another hash than its manifest", []record.Quadrant{record.QuadrantResources}},
	truth.ReasonFileChanged:        {"a file of the model is not as it was when it was loaded", []record.Quadrant{record.QuadrantResources}},
	truth.ReasonUnreachable:        {"share of looks at which the health address did not answer", []record.Quadrant{record.QuadrantMetrics}},
	truth.ReasonVersionLatest:      {"the service tells no fixed version of its model", []record.Quadrant{record.QuadrantLogs}},
	truth.ReasonPathMissing:        {"the model's path does not exist", []record.Quadrant{record.QuadrantResources}},
	truth.ReasonPathUnreadable:     {"the model's path cannot be read", []record.Quadrant{record.QuadrantResources}},
	truth.ReasonManifestUnreadable: {"the manifest of the model's files cannot be read", []record.Quadrant{record.QuadrantResources}},
	truth.ReasonFileTouched:        {"a file of the model was touched after it was loaded, when its hash was not known", []record.Quadrant{record.QuadrantResources}},
}

// checks are the kinds of the truth check, which looks while recording.
func checks() []Kind {
	var out []Kind
	for _, r := range truth.Reasons() {
		c := checked[r]
		for _, q := range c.quads {
			out = append(out, Kind{
				Name: r.FindingKind(), Quadrant: q, Text: c.text,
				Needs: fmt.Sprintf("a service under `%s_check` in the configuration (docs/truth-check.md)", truth.Sensor),
			})
		}
	}
	return out
}
