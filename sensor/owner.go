package sensor

import (
	"slices"
	"strings"

	"inquest/record"
)

// identity lists, for each kind of entity, the labels that name it: semantic
// conventions, their Prometheus form, and what well-known exporters write. What
// a scrape put aside because its own labels were in the way ("exported_pod") is
// what the series speaks about.
var identity = []struct {
	kind   record.EntityKind
	labels []string
}{
	{record.EntityGPU, []string{"UUID", "gpu_uuid", "hw.id", "hw_id", "gpu.uuid"}},
	{record.EntityPod, []string{"exported_pod", "k8s.pod.name", "k8s_pod_name", "pod", "pod_name", "container.name", "container_name"}},
	{record.EntityService, []string{"exported_service", "service.name", "service_name", "service", "job", "app"}},
	{record.EntityNode, []string{"exported_node", "k8s.node.name", "k8s_node_name", "node", "host.name", "host_name", "hostname", "Hostname", "nodename"}},
	{record.EntityModel, []string{"gen_ai.request.model", "gen_ai_request_model", "model_name", "model", "ModelName"}},
}

// instanceLabel names what was scraped: the machine itself, when a metric is of
// machines and nothing else names one.
const instanceLabel = "instance"

// Owners returns the entities that a series' labels name, by kind. A label of the
// series itself stands above one of the resource that sent it: an agent in a pod
// of its own tells of other pods.
func Owners(l map[string]string) map[record.EntityKind]string {
	out := map[record.EntityKind]string{}
	for _, id := range identity {
		for _, name := range id.labels {
			if v := l[name]; v != "" {
				out[id.kind] = v
				break
			}
		}
	}
	if v := l["pod"]; v != "" && l["exported_pod"] == "" {
		out[record.EntityPod] = v
	}
	if v := l["node"]; v != "" && l["exported_node"] == "" {
		out[record.EntityNode] = v
	}
	return out
}

// About is what a series says of itself: it is worked out once for a window.
type About struct {
	Class Class
	Owner record.Entity // the most special that its labels name, zero for none
	// Edges are how the entities that its labels name are joined.
	Edges             []record.Edge
	Subject, Selector string
	// Limit, when it is not 0, is the value at which what the series shows is used
	// up.
	Limit float64
}

// About returns what the series says of itself.
func (s *Series) About() *About {
	if s.about != nil {
		return s.about
	}
	return about(s, nil)
}

// about works it out; classes may hold those of names that were seen before.
func about(s *Series, classes map[[2]string]Class) *About {
	a := &About{Class: s.Class, Limit: s.Limit, Subject: Subject(s), Selector: s.Query}
	if a.Class == "" {
		key := [2]string{s.Name, s.Unit}
		c, ok := classes[key]
		if !ok {
			c = Classify(s.Name, s.Unit)
			if classes != nil {
				classes[key] = c
			}
		}
		a.Class = refine(c, s)
	}
	if a.Limit == 0 {
		a.Limit, _ = IsUtilisation(s.Name, s.Unit)
	}
	if a.Selector == "" {
		a.Selector = Selector(s)
	}
	a.Owner, a.Edges = owner(s)
	return a
}

// owner returns the entity that a series speaks about and how the entities that
// its labels name are joined.
func owner(s *Series) (record.Entity, []record.Edge) {
	names := Owners(s.Labels)
	if measured := exported(s.Name, names[record.EntityService]); measured != "" {
		return Service(measured), nil
	}
	machine := isNodeMetric(s.Name)
	if machine && names[record.EntityNode] == "" {
		names[record.EntityNode] = s.Labels[instanceLabel]
	}
	entity := func(k record.EntityKind) record.Entity {
		if names[k] == "" {
			return record.Entity{}
		}
		e := record.Entity{Kind: k, Name: names[k]}
		if k == record.EntityGPU {
			e.Of = names[record.EntityNode]
		}
		return e
	}
	gpu, pod := entity(record.EntityGPU), entity(record.EntityPod)
	service, node, model := entity(record.EntityService), entity(record.EntityNode), entity(record.EntityModel)
	var edges []record.Edge
	join := func(kind record.EdgeKind, from, to record.Entity) {
		if !from.IsZero() && !to.IsZero() {
			edges = append(edges, record.Edge{Kind: kind, From: from, To: to})
		}
	}
	if machine && !node.IsZero() {
		join(record.EdgeRunsOn, pod, node)
		join(record.EdgeServes, pod, service)
		return node, edges
	}
	if gpu.IsZero() { // what tells of a card names who uses it, and runs elsewhere
		join(record.EdgeServes, pod, service)
	}
	join(record.EdgeRunsOn, pod, node)
	join(record.EdgeRunsOn, pod, gpu)
	join(record.EdgeRunsOn, gpu, node)
	if pod.IsZero() {
		join(record.EdgeServes, service, model)
	} else {
		join(record.EdgeServes, pod, model)
	}
	for _, e := range []record.Entity{gpu, pod, service, model, node} {
		if !e.IsZero() {
			return e, edges
		}
	}
	return record.Entity{}, nil
}

// exported returns what an exporter measures, when its name says so and the
// metric's name agrees: "redis" for redis_connected_clients of redis-exporter.
// Machines are no services.
func exported(metric, service string) string {
	of, found := strings.CutSuffix(strings.ToLower(service), "exporter")
	of = strings.TrimRight(of, "-_.")
	if !found || of == "" || of == "node" {
		return ""
	}
	words := nameWords(metric)
	if len(words) == 0 || len(words[0]) < 2 || words[0] == "dcgm" {
		return ""
	}
	if strings.HasPrefix(of, words[0]) || strings.HasPrefix(words[0], of) {
		return strings.TrimRight(service[:len(of)], "-_.")
	}
	return ""
}

// isNodeMetric reports whether a metric measures a machine though its labels may
// name a pod, as agents do that run in one.
func isNodeMetric(name string) bool {
	for _, prefix := range []string{"k8s.node.", "k8s_node_", "kube_node_", "node_", "system.", "system_", "host.", "host_", "machine_"} {
		if len(name) > len(prefix) && name[:len(prefix)] == prefix {
			return true
		}
	}
	return false
}

// Observers returns the services that measure others' pods, as agents and
// exporters do whose series carry the pod they tell of: each of their pods is
// claimed by its own service too, or they claim the pods of a service and others
// besides. Calls are evidence that a service is none.
func Observers(edges []record.Edge) map[record.Entity]bool {
	pods := map[record.Entity]map[record.Entity]bool{} // of each service
	claims := map[record.Entity][]record.Entity{}      // on each pod
	for _, e := range edges {
		if e.Kind != record.EdgeServes || e.From.Kind != record.EntityPod || e.To.Kind != record.EntityService {
			continue
		}
		if pods[e.To] == nil {
			pods[e.To] = map[record.Entity]bool{}
		}
		if !pods[e.To][e.From] {
			pods[e.To][e.From] = true
			claims[e.From] = append(claims[e.From], e.To)
		}
	}
	calls := map[record.Entity]bool{}
	for _, e := range edges {
		if e.Kind == record.EdgeCalls {
			calls[e.From], calls[e.To] = true, true
		}
	}
	out := map[record.Entity]bool{}
	for s, own := range pods {
		if calls[s] {
			continue
		}
		for p := range own {
			for _, o := range claims[p] {
				if o != s && observes(own, pods[o], calls[o]) {
					out[s] = true
				}
			}
		}
	}
	return out
}

// observes reports whether a service with the pods own observes another with
// theirs: it claims them all, and more, or just them where the other is known by
// its calls.
func observes(own, theirs map[record.Entity]bool, calls bool) bool {
	for p := range theirs {
		if !own[p] {
			return calls // part of them, as an agent on one machine does
		}
	}
	return calls || len(own) > len(theirs)
}

// Subject names a series within its owner: the metric and the labels that are no
// part of the owner's identity or of the resource.
func Subject(s *Series) string {
	var rest map[string]string
	for n, v := range s.Labels {
		if !isIdentity(n) {
			if rest == nil {
				rest = map[string]string{}
			}
			rest[n] = v
		}
	}
	if len(rest) == 0 {
		return s.Name
	}
	return s.Name + "{" + LabelText(rest) + "}"
}

var identityLabels = func() map[string]bool {
	out := map[string]bool{"namespace": true, "device": true, "modelName": true, "__name__": true, instanceLabel: true}
	for _, id := range identity {
		for _, n := range id.labels {
			out[n] = true
		}
	}
	return out
}()

// resourceStems begin the labels that come from a resource.
var resourceStems = []string{"k8s", "telemetry", "otel_scope", "service", "host", "container", "process"}

func isIdentity(label string) bool {
	return identityLabels[label] || slices.ContainsFunc(resourceStems, func(stem string) bool {
		return len(label) > len(stem) && label[:len(stem)] == stem && (label[len(stem)] == '.' || label[len(stem)] == '_')
	})
}
