package nezha

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// spanRow is one span as the files have it, in OpenTelemetry terms.
type spanRow struct {
	traceID, spanID, parent string
	service, pod            string
	name, kind              string
	namespace, table        string // of a database statement
	start, end              int64
}

// logRow is one log record in OpenTelemetry terms.
type logRow struct {
	time               int64
	service, pod, node string
	container          string
	severity           string
	number             int
	function, line     string
	body               string
	traceID, spanID    string
}

// serviceOf returns the service of a pod: Kubernetes appends two parts.
func serviceOf(pod string) string {
	parts := strings.Split(pod, "-")
	if len(parts) < 3 {
		return pod
	}
	return strings.Join(parts[:len(parts)-2], "-")
}

var statement = regexp.MustCompile(`^(?:SELECT|INSERT|UPDATE|DELETE) (\w+)\.(\w+)$`)

func parseSpan(row []string, share func(string) string) (spanRow, error) {
	start, err := strconv.ParseInt(row[5], 10, 64)
	if err != nil {
		return spanRow{}, err
	}
	end, err := strconv.ParseInt(row[6], 10, 64)
	if err != nil {
		return spanRow{}, err
	}
	s := spanRow{
		traceID: share(row[0]), spanID: strings.Clone(row[1]), parent: strings.Clone(row[2]),
		pod: share(row[3]), name: share(row[4]), start: start, end: max(start, end),
	}
	if s.parent == "root" {
		s.parent = ""
	}
	s.service = share(serviceOf(s.pod))
	if strings.HasPrefix(s.name, "HTTP ") {
		s.kind = "client"
	} else if m := statement.FindStringSubmatch(s.name); m != nil {
		s.kind, s.namespace, s.table = "client", share(m[1]), share(m[2])
	}
	return s, nil
}

// severities of the data set's logger, as OpenTelemetry numbers them.
var severities = map[string]int{"TRACE": 1, "DEBUG": 5, "INFO": 9, "WARN": 13, "ERROR": 17, "FATAL": 21}

// line is what the services print: clock, severity, place, ids, text.
var line = regexp.MustCompile(`^(?:\S+ +)?(TRACE|DEBUG|INFO|WARN|ERROR|FATAL) +(\S+?)#(\d+) (?:TraceID: \S* SpanID: \S* ?)?`)

func parseLog(row []string, share func(string) string) (logRow, error) {
	l := logRow{
		node: share(row[2]), pod: share(row[3]), container: share(row[4]),
		traceID: share(row[5]), spanID: strings.Clone(row[6]), body: row[7],
	}
	l.service = share(serviceOf(l.pod))
	var err error
	if l.time, err = strconv.ParseInt(row[1], 10, 64); err != nil {
		return l, err
	}
	if l.time <= 0 { // the recorder's conversion overflowed; the first column is right
		t, err := time.Parse("2006-01-02T15:04:05.999999999", strings.TrimSuffix(row[0], "Z"))
		if err != nil {
			return l, err
		}
		l.time = t.UnixNano()
	}
	var wrapped struct {
		Log string `json:"log"`
	}
	if json.Unmarshal([]byte(l.body), &wrapped) == nil && wrapped.Log != "" {
		l.body = wrapped.Log
	}
	l.body = strings.TrimRight(l.body, "\n")
	if m := line.FindStringSubmatchIndex(l.body); m != nil {
		l.severity = share(l.body[m[2]:m[3]])
		l.function = share(l.body[m[4]:m[5]])
		l.line = share(l.body[m[6]:m[7]])
		l.number = severities[l.severity]
		l.body = l.body[m[1]:]
	}
	l.body = strings.Clone(l.body)
	return l, nil
}

// column says how a column of the metric files is named in OpenTelemetry terms.
type column struct {
	index  int
	name   string
	unit   string
	factor float64
	labels map[string]string
	node   bool // about the machine, not the pod
}

// podColumns are the columns of POD_metric.csv.gz. PodSuccessRate (18) is kept
// though it is always nought.
var podColumns = []column{
	{3, "k8s.pod.cpu.usage", "{cpu}", 1e-3, nil, false},
	{4, "k8s.pod.cpu_limit_utilization", "1", 1e-2, nil, false},
	{5, "k8s.pod.memory.usage", "By", 1 << 20, nil, false},
	{6, "k8s.pod.memory_limit_utilization", "1", 1e-2, nil, false},
	{7, "container.filesystem.syscalls", "{call}/s", 1, map[string]string{"direction": "read"}, false},
	{8, "container.filesystem.syscalls", "{call}/s", 1, map[string]string{"direction": "write"}, false},
	{9, "k8s.pod.network.io", "By/s", 1, map[string]string{"direction": "receive"}, false},
	{10, "k8s.pod.network.io", "By/s", 1, map[string]string{"direction": "transmit"}, false},
	{11, "http.client.request.duration", "s", 1, map[string]string{"quantile": "0.9"}, false},
	{12, "http.server.request.duration", "s", 1, map[string]string{"quantile": "0.9"}, false},
	{13, "http.client.request.duration", "s", 1, map[string]string{"quantile": "0.95"}, false},
	{14, "http.server.request.duration", "s", 1, map[string]string{"quantile": "0.95"}, false},
	{15, "http.client.request.duration", "s", 1, map[string]string{"quantile": "0.99"}, false},
	{16, "http.server.request.duration", "s", 1, map[string]string{"quantile": "0.99"}, false},
	{17, "http.server.request.rate", "{request}/s", 1, nil, false},
	{18, "http.server.request.success_ratio", "1", 1e-2, nil, false},
	{19, "k8s.node.cpu.utilization", "1", 1e-2, nil, true},
	{20, "k8s.node.memory.utilization", "1", 1e-2, nil, true},
	{21, "k8s.node.network.io", "By/s", 1, map[string]string{"direction": "receive"}, true},
}

// frontColumns are those of front_service.csv.gz.
var frontColumns = []column{
	{3, "http.server.request.success_ratio", "1", 1e-2, nil, false},
	{4, "http.server.request.duration", "s", 1, map[string]string{"quantile": "0.5"}, false},
	{5, "http.server.request.duration", "s", 1, map[string]string{"quantile": "0.9"}, false},
	{6, "http.server.request.duration", "s", 1, map[string]string{"quantile": "0.95"}, false},
	{7, "http.server.request.duration", "s", 1, map[string]string{"quantile": "0.99"}, false},
}

// metricTime reads the seconds column.
func metricTime(s string) (int64, error) {
	sec, err := strconv.ParseInt(s, 10, 64)
	return sec * int64(time.Second), err
}
