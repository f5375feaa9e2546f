package sensor

import (
	"regexp"
	"strconv"
	"strings"

	"inquest/record"
)

// entityLabels are the labels by which Prometheus' data model knows an entity.
var entityLabels = map[record.EntityKind]string{
	record.EntityService: "service_name",
	record.EntityPod:     "k8s_pod_name",
	record.EntityNode:    "k8s_node_name",
}

// nextLabel is where a new label begins in the text of labels; values may hold
// commas.
var nextLabel = regexp.MustCompile(`,[^,={}]+=`)

// sampleQuery is the PromQL selector of a measure: its subject is a series'
// name with labels as [LabelText] writes them, in braces.
func sampleQuery(k Key) string {
	name, rest, ok := strings.Cut(k.Subject, "{")
	var matchers []string
	if label := entityLabels[k.Entity.Kind]; label != "" {
		matchers = append(matchers, label+"="+strconv.Quote(k.Entity.Name))
	}
	if ok {
		rest = strings.TrimSuffix(rest, "}")
		for rest != "" {
			end := len(rest)
			if at := nextLabel.FindStringIndex(rest); at != nil {
				end = at[0]
			}
			label, value, found := strings.Cut(rest[:end], "=")
			if found {
				matchers = append(matchers, promName(label)+"="+strconv.Quote(value))
			}
			rest = strings.TrimPrefix(rest[end:], ",")
		}
	}
	if len(matchers) == 0 {
		return promName(name)
	}
	return promName(name) + "{" + strings.Join(matchers, ",") + "}"
}

// promName is a name as Prometheus' classic data model takes it.
func promName(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == ':':
			return r
		}
		return '_'
	}, s)
}
