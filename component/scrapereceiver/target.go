package scrapereceiver

import (
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/scrape"
)

// target is what is remembered of a target between two scrapes.
type target struct {
	url      string
	interval time.Duration
	own      origin
	resource []labels.Label // of series that are the target's own
	lastUse  time.Time      // guarded by targets.mu

	mu     sync.Mutex
	scrape uint64 // number of the newest appender
	series map[uint64]*series
	groups map[string]*group
}

// origin is job and instance. A target may tell of others, as a federating one
// does, so each series has its own.
type origin struct{ job, instance string }

// kubernetes names the attributes of usual target labels.
var kubernetes = map[string]string{
	"pod": "k8s.pod.name", "pod_name": "k8s.pod.name", "kubernetes_pod_name": "k8s.pod.name",
	"namespace": "k8s.namespace.name", "kubernetes_namespace": "k8s.namespace.name",
	"node": "k8s.node.name", "node_name": "k8s.node.name", "kubernetes_node": "k8s.node.name",
	"container": "k8s.container.name", "container_name": "k8s.container.name",
	"deployment": "k8s.deployment.name", "cluster": "k8s.cluster.name",
	"host": "host.name", "hostname": "host.name", "nodename": "host.name",
}

func newTarget(t *scrape.Target) *target {
	u := t.URL()
	out := &target{
		url:    u.Redacted(),
		own:    origin{t.GetValue(model.JobLabel), t.GetValue(model.InstanceLabel)},
		series: map[uint64]*series{},
		groups: map[string]*group{},
	}
	if d, err := model.ParseDuration(t.GetValue(model.ScrapeIntervalLabel)); err == nil {
		out.interval = time.Duration(d)
	}
	out.resource = resourceOf(u, t)
	return out
}

// resourceOf returns what is known of the process behind a target, by names of
// OpenTelemetry's conventions. Its labels stay labels of its series, too.
func resourceOf(u *url.URL, t *scrape.Target) []labels.Label {
	out := []labels.Label{{Name: "url.scheme", Value: u.Scheme}}
	if host := u.Hostname(); host != "" {
		out = append(out, labels.Label{Name: "server.address", Value: host})
	}
	if port := u.Port(); port != "" {
		out = append(out, labels.Label{Name: "server.port", Value: port})
	}
	seen := map[string]bool{}
	t.LabelsRange(func(l labels.Label) {
		if name := kubernetes[l.Name]; name != "" && !seen[name] {
			seen[name] = true
			out = append(out, labels.Label{Name: name, Value: l.Value})
		}
	})
	return out
}

// targets are those that were scraped lately, by labels and URL: one that comes
// back is known.
type targets struct {
	mu    sync.Mutex
	byKey map[string]*target
	swept time.Time
}

// forgetAfter is how long a target is remembered at least. Its end is marked a
// little more than two intervals after its last scrape.
const forgetAfter = 10 * time.Minute

func (ts *targets) of(t *scrape.Target, now time.Time) *target {
	var key strings.Builder
	key.WriteString(t.URL().String())
	t.LabelsRange(func(l labels.Label) {
		key.WriteString("\xff" + l.Name + "\xff" + l.Value)
	})
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.byKey == nil {
		ts.byKey = map[string]*target{}
	}
	if now.Sub(ts.swept) > time.Minute {
		ts.swept = now
		for k, old := range ts.byKey {
			if now.Sub(old.lastUse) > max(forgetAfter, 4*old.interval) {
				delete(ts.byKey, k)
			}
		}
	}
	out := ts.byKey[key.String()]
	if out == nil {
		out = newTarget(t)
		ts.byKey[key.String()] = out
	}
	out.lastUse = now
	return out
}

// idleScrapes is after how many appenders a series that did not come is
// forgotten. A scrape takes one, or up to three when it fails.
const idleScrapes = 20

// sweep forgets series that ended. It is called with mu held.
func (t *target) sweep() {
	if t.scrape%idleScrapes != 0 {
		return
	}
	for k, s := range t.series {
		if t.scrape-s.seen > idleScrapes {
			delete(t.series, k)
		}
	}
	for k, g := range t.groups {
		if t.scrape-g.seen > idleScrapes {
			delete(t.groups, k)
		}
	}
}
