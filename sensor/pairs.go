package sensor

import (
	"cmp"
	"slices"
	"strings"

	"inquest/record"
)

// hitPairs are how names of hits become those of what they are a share of; miss
// tells that it counts the misses.
var hitPairs = []struct {
	hit, other string
	miss       bool
}{
	{"prompt_tokens_cached", "prompt_tokens", false},
	{"cached_tokens", "prompt_tokens", false},
	{"cached_tokens", "input_tokens", false},
	{"cache_read.input_tokens", "input_tokens", false},
	{"hit_tokens", "requested_tokens", false},
	{"hits", "queries", false},
	{"hits", "lookups", false},
	{"hits", "misses", true},
	{"hit", "miss", true},
}

// ratios puts shares of hits in the place of the counts of hits and lookups,
// whose level follows traffic. Intervals without lookups have none.
func ratios(in []Series, counted map[string]bool) []Series {
	index := map[string]int{}
	for i := range in {
		if n := in[i].Name; counted[n] && (countsHits(&in[i]) || lookups(n) || strings.Contains(n, "tokens")) {
			index[in[i].Name+"\x00"+LabelText(in[i].Labels)] = i
		}
	}
	drop := map[int]bool{}
	var made []Series
	for i := range in {
		s := &in[i]
		if !counted[s.Name] || !countsHits(s) {
			continue
		}
		for _, pair := range hitPairs {
			if !strings.Contains(s.Name, pair.hit) {
				continue
			}
			k, ok := index[strings.Replace(s.Name, pair.hit, pair.other, 1)+"\x00"+LabelText(s.Labels)]
			if !ok || k == i {
				continue
			}
			class := Classify(s.Name, s.Unit)
			name := strings.TrimSuffix(s.Name, "_total")
			if class == ClassCacheHit {
				name = strings.Replace(strings.Replace(name, "hits", "hit", 1), "hit", "hit_ratio", 1)
				drop[i] = true
			} else {
				name += "_ratio"
			}
			if lookups(in[k].Name) {
				drop[k] = true
			}
			if r := share(name, s, &in[k], pair.miss); len(r.Points) > 0 {
				r.Class = class
				made = append(made, r)
			}
			break
		}
	}
	out := make([]Series, 0, len(in)+len(made))
	for i := range in {
		if !drop[i] {
			out = append(out, in[i])
		}
	}
	return append(out, made...)
}

func countsHits(s *Series) bool {
	if !strings.Contains(s.Name, "hit") && !strings.Contains(s.Name, "cache") {
		return false
	}
	c := Classify(s.Name, s.Unit)
	return c == ClassCacheHit || c == ClassCached
}

func lookups(name string) bool {
	return strings.Contains(name, "miss") || strings.Contains(name, "queries") || strings.Contains(name, "lookups") || strings.Contains(name, "requested")
}

// share returns hits as a share of all, or of hits and misses.
func share(name string, hits, other *Series, miss bool) Series {
	out := Series{Name: name, Labels: hits.Labels, Unit: "1"}
	for i, p := range hits.Points {
		v, ok := at(other.Points, i, p.Time)
		if miss {
			v += p.Value
		}
		if ok && v > 0 {
			out.Points = append(out.Points, Point{p.Time, min(1, p.Value/v)})
		}
	}
	h, o := "rate("+Selector(hits)+rateWindow+")", "rate("+Selector(other)+rateWindow+")"
	out.Query = h + " / " + o
	if miss {
		out.Query = h + " / (" + h + " + " + o + ")"
	}
	return out
}

// use is a usage with its limit: a limit of its own, or what is left of it. Names
// are as normal has them.
type use struct {
	used, free string
	state      string // of the usage, empty for any
	limits     []string
}

var uses = []use{
	{used: "k8s_pod_memory_usage", limits: []string{"k8s_container_memory_limit", "kube_pod_container_resource_limits"}},
	{used: "k8s_pod_memory_working_set", limits: []string{"k8s_container_memory_limit", "kube_pod_container_resource_limits"}},
	{used: "container_memory_working_set", limits: []string{"container_spec_memory_limit", "k8s_container_memory_limit", "kube_pod_container_resource_limits"}},
	{used: "container_memory_usage", limits: []string{"container_spec_memory_limit", "k8s_container_memory_limit", "kube_pod_container_resource_limits", "container_memory_usage_limit"}},
	{used: "k8s_pod_cpu_usage", limits: []string{"k8s_container_cpu_limit", "kube_pod_container_resource_limits"}},
	{used: "container_cpu_usage", limits: []string{"k8s_container_cpu_limit", "kube_pod_container_resource_limits"}},
	{used: "k8s_node_memory_usage", limits: []string{"k8s_node_allocatable_memory", "machine_memory"}},
	{used: "k8s_node_memory_working_set", limits: []string{"k8s_node_allocatable_memory", "machine_memory"}},
	{used: "k8s_node_cpu_usage", limits: []string{"k8s_node_allocatable_cpu", "machine_cpu_cores"}},
	{free: "node_memory_memavailable", limits: []string{"node_memory_memtotal"}},
	{free: "node_filesystem_avail", limits: []string{"node_filesystem_size"}},
	{free: "k8s_volume_available", limits: []string{"k8s_volume_capacity"}},
	{used: "system_memory_usage", state: "used", limits: []string{"system_memory_limit"}},
	{used: "db_client_connection_count", state: "used", limits: []string{"db_client_connection_max"}},
	{used: "db_client_connections_usage", state: "used", limits: []string{"db_client_connections_max"}},
	{used: "hikaricp_connections_active", limits: []string{"hikaricp_connections_max"}},
	{used: "redis_connected_clients", limits: []string{"redis_config_maxclients", "redis_max_clients"}},
	{used: "redis_memory_used", limits: []string{"redis_memory_max", "redis_config_maxmemory"}},
	{used: "dcgm_fi_dev_fb_used", free: "dcgm_fi_dev_fb_free"},
	{used: "nv_gpu_memory_used", limits: []string{"nv_gpu_memory_total"}},
	{used: "hw_gpu_memory_usage", limits: []string{"hw_gpu_memory_limit"}},
	{used: "ray_node_mem_used", limits: []string{"ray_node_mem"}},
	{used: "jvm_memory_used", limits: []string{"jvm_memory_limit", "jvm_memory_max"}},
	{used: "process_open_fds", limits: []string{"process_max_fds"}},
	{used: "otelcol_exporter_queue_size", limits: []string{"otelcol_exporter_queue_capacity"}},
	{used: "otel_sdk_processor_span_queue_size", limits: []string{"otel_sdk_processor_span_queue_capacity"}},
	{used: "otel_sdk_processor_log_queue_size", limits: []string{"otel_sdk_processor_log_queue_capacity"}},
	{used: "sglang:lora_pool_slots_used", limits: []string{"sglang:lora_pool_slots"}},
}

// normal is a name in Prometheus' form without what conventions append.
func normal(name string) string {
	name = strings.TrimSuffix(strings.ToLower(promName(name)), "_total")
	for _, s := range []string{"_bytes", "_seconds", "_ratio", "_mebibytes"} {
		if cut, ok := strings.CutSuffix(name, s); ok {
			return cut
		}
	}
	return name
}

// utilisations returns a series for each usage whose limit is another series.
func utilisations(in []Series) []Series {
	byName := map[string][]int{}
	names := map[string]string{} // as normal has them
	for i := range in {
		n, ok := names[in[i].Name]
		if !ok {
			n = normal(in[i].Name)
			names[in[i].Name] = n
		}
		byName[n] = append(byName[n], i)
	}
	var out []Series
	for _, u := range uses {
		first := u.used
		if first == "" {
			first = u.free
		}
		for _, i := range byName[first] {
			s := &in[i]
			if u.state != "" && label(s.Labels, "db.client.connection.state", "system.memory.state", "state") != u.state {
				continue
			}
			var r Series
			switch {
			case u.used != "" && u.free != "":
				r = utilisation(s, matching(in, byName[u.free], s), true, false)
			default:
				for _, l := range u.limits {
					if m := matching(in, byName[l], s); len(m) > 0 {
						r = utilisation(s, m, false, u.used == "")
						break
					}
				}
			}
			if len(r.Points) > 0 {
				out = append(out, r)
			}
		}
	}
	return append(out, fragmentation(in, byName)...)
}

// matching returns the series among those that speak of the same thing as s.
func matching(in []Series, among []int, s *Series) []*Series {
	if len(among) == 0 {
		return nil
	}
	mine := Owners(s.Labels)
	resource := "memory"
	if strings.Contains(s.Name, "cpu") {
		resource = "cpu"
	}
	var out []*Series
	for _, i := range among {
		o := &in[i]
		if r := o.Labels["resource"]; r != "" && r != resource {
			continue
		}
		if sameThing(mine, Owners(o.Labels), s.Labels, o.Labels) {
			out = append(out, o)
		}
	}
	return out
}

// sameThing compares the most special entity that both name, and all other
// labels that both have.
func sameThing(a, b map[record.EntityKind]string, la, lb map[string]string) bool {
	same := false
	for _, k := range []record.EntityKind{record.EntityGPU, record.EntityPod, record.EntityNode, record.EntityService} {
		if a[k] != "" && b[k] != "" {
			if a[k] != b[k] {
				return false
			}
			same = true
			break
		}
	}
	if !same && (la[instanceLabel] == "" || la[instanceLabel] != lb[instanceLabel]) {
		return false
	}
	for _, n := range []string{"k8s.container.name", "k8s_container_name"} {
		if la[n] != "" && lb[n] != "" && la[n] != lb[n] {
			return false
		}
	}
	for n, v := range la {
		if w, ok := lb[n]; ok && w != v && !isIdentity(n) && n != "uid" && n != "id" {
			return false
		}
	}
	return true
}

// unlimited is the value from which a limit means that there is none.
const unlimited = 1e18

// utilisation returns s as a share of the sum of limits, which may be what is left
// of it (plus); of s itself only what is not left when it is free.
func utilisation(s *Series, limits []*Series, plus, free bool) Series {
	if len(limits) == 0 {
		return Series{}
	}
	out := Series{
		Name: strings.TrimSuffix(s.Name, "_total") + "_utilization", Labels: s.Labels, Unit: "1", Limit: 1,
		Class: refine(Classify(s.Name, s.Unit), &Series{Name: s.Name}),
	}
	if free { // of a name that tells what is left, what it is left of
		out.Class = ClassMemory
		if strings.Contains(s.Name, "filesystem") || strings.Contains(s.Name, "volume") {
			out.Class = ClassDiskUse
		}
	}
	next := make([]int, len(limits))
	for _, p := range s.Points {
		limit := 0.0
		for i, l := range limits {
			for next[i]+1 < len(l.Points) && l.Points[next[i]+1].Time <= p.Time {
				next[i]++
			}
			limit += l.Points[next[i]].Value
		}
		if plus {
			limit += p.Value
		}
		v := p.Value
		if free {
			v = limit - v
		}
		if limit > 0 && limit < unlimited && v >= 0 {
			out.Points = append(out.Points, Point{p.Time, v / limit})
		}
	}
	own, sum := Selector(s), "sum("+Selector(limits[0])+")"
	switch {
	case plus:
		out.Query = "sum(" + own + ") / (sum(" + own + ") + " + sum + ")"
	case free:
		out.Query = "1 - sum(" + own + ") / " + sum
	default:
		out.Query = "sum(" + own + ") / " + sum
	}
	return out
}

// fragmentation returns the share of memory that an allocator holds and does not
// use, where it tells both.
func fragmentation(in []Series, byName map[string][]int) []Series {
	var names []string
	for n := range byName {
		if strings.Contains(n, "reserved") {
			names = append(names, n)
		}
	}
	slices.SortFunc(names, cmp.Compare[string])
	var out []Series
	for _, n := range names {
		other := byName[strings.Replace(n, "reserved", "allocated", 1)]
		for _, i := range byName[n] {
			r := &in[i]
			m := matching(in, other, r)
			if len(m) != 1 {
				continue
			}
			s := Series{
				Name: strings.Replace(r.Name, "reserved", "fragmentation", 1), Labels: r.Labels, Unit: "1", Class: ClassFragments,
				Query: "1 - sum(" + Selector(m[0]) + ") / sum(" + Selector(r) + ")",
			}
			for k, p := range r.Points {
				if a, ok := at(m[0].Points, k, p.Time); ok && p.Value > 0 {
					s.Points = append(s.Points, Point{p.Time, max(0, 1-a/p.Value)})
				}
			}
			if len(s.Points) > 0 {
				out = append(out, s)
			}
		}
	}
	return out
}
