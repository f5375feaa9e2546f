package sensor

import (
	"testing"

	"github.com/prometheus/prometheus/promql/parser"

	"inquest/record"
)

func TestSampleQuery(t *testing.T) {
	f := func(subject string, e record.Entity, want string) {
		t.Helper()
		got := sampleQuery(Key{Subject: subject, Entity: e})
		if got != want {
			t.Errorf("%s: got %s, want %s", subject, got, want)
		}
		if _, err := parser.NewParser(parser.Options{}).ParseExpr(got); err != nil {
			t.Errorf("%s is not PromQL: %v", got, err)
		}
	}
	pod := record.Entity{Kind: record.EntityPod, Name: "chat-1"}
	f("queue_wait_seconds", record.Entity{}, `queue_wait_seconds`)
	f("queue_wait_seconds", pod, `queue_wait_seconds{k8s_pod_name="chat-1"}`)
	f("http_server_request_duration_seconds{quantile=0.95}", pod, `http_server_request_duration_seconds{k8s_pod_name="chat-1",quantile="0.95"}`)
	f("k8s.pod.network.io{direction=receive,note=a, b}", pod, `k8s_pod_network_io{k8s_pod_name="chat-1",direction="receive",note="a, b"}`)
	f(`m{path=/a"b}`, record.Entity{Kind: record.EntityService, Name: "s"}, `m{service_name="s",path="/a\"b"}`)
}
