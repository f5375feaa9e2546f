package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// bucketServer is an S3 server at a fixed address, which can be stopped and
// started again with what it holds.
type bucketServer struct {
	addr    string
	backend gofakes3.Backend
	srv     *httptest.Server
}

func newBucketServer(t *testing.T) *bucketServer {
	t.Helper()
	b := &bucketServer{addr: freePort(t), backend: s3mem.New()}
	if err := b.backend.CreateBucket("payloads"); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bucketServer) start(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	b.srv = &httptest.Server{Listener: l, Config: &http.Server{Handler: gofakes3.New(b.backend).Server(), ReadHeaderTimeout: time.Minute}}
	b.srv.Start()
}

func (b *bucketServer) stop() {
	b.srv.CloseClientConnections()
	b.srv.Close()
}

func (b *bucketServer) setting() string {
	return fmt.Sprintf(`extensions::inquest::payloads={policies: [{services: ["chat-*"]}], s3: {endpoint: %q, bucket: payloads, prefix: recorder-1, region: us-east-1, access_key: key, secret_key: secret, insecure: true, path_style: true, retries: 1}}`, b.addr)
}

// inputLine is a good event with the raw input text.
func inputLine(t *testing.T, i int, text string) (line, hash string) {
	t.Helper()
	sum := sha256.Sum256([]byte(text))
	hash = hex.EncodeToString(sum[:])
	return eventLine(t, i, func(e map[string]any) {
		e["service"] = "chat-api"
		business := e["business"].(map[string]any)
		business["input"], business["input_hash"], business["user_id"] = text, hash, "ann"
	}), hash
}

// Payloads go to S3. While it is out of reach, at the start or later, events are
// acknowledged, stored and marked; none names a payload that is not there.
func TestPayloadsInS3(t *testing.T) {
	b := newBucketServer(t)
	dir := t.TempDir()
	s := startServer(t, dir, b.setting()) // nothing listens at the bucket's address
	defer http.DefaultClient.CloseIdleConnections()
	var out bytes.Buffer
	ask := func(args ...string) (string, error) {
		out.Reset()
		root := newRootCommand()
		root.SetArgs(append(args, "--server", s.api))
		root.SetOut(&out)
		root.SetErr(&out)
		err := root.Execute()
		return out.String(), err
	}
	kept := func(want, missing int) {
		t.Helper()
		if got := s.count(t, `{record.type="log"} "payload.sha256":*`); got != want {
			t.Errorf("%d events name their payload, want %d", got, want)
		}
		if got := s.count(t, `{record.type="log"} "payload.missing":=unavailable "payload.sha256":""`); got != missing {
			t.Errorf("%d events say that it is missing, want %d", got, missing)
		}
	}
	line, _ := inputLine(t, 1, "before the bucket is there")
	began := time.Now()
	s.events(t, line)
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("the event was acknowledged after %s", took)
	}
	kept(0, 1)
	if _, err := ask("payloads", "erase", "--user", "ann"); err == nil || !strings.Contains(err.Error(), "unavailable") {
		t.Errorf("an erasure that reaches nothing answers %v", err)
	}
	s.stop()

	b.start(t)
	s = startServer(t, dir, b.setting())
	line, hash := inputLine(t, 2, "kept in the bucket")
	s.events(t, line)
	kept(1, 1)
	if got, err := ask("payloads", "get", hash); err != nil || got != "kept in the bucket" {
		t.Errorf("payload is %q, %v", got, err)
	}
	b.stop()
	for i := range 3 {
		line, _ := inputLine(t, 10+i, fmt.Sprint("while it is away ", i))
		s.events(t, line)
	}
	kept(1, 4)
	b.start(t)
	defer b.stop()
	s.stop()
	s = startServer(t, dir, b.setting())
	defer func() { s.stop() }()
	if got, err := ask("payloads", "erase", "--user", "ann"); err != nil || !strings.HasPrefix(got, "1 references removed") {
		t.Errorf("erase: %s, %v", got, err)
	}
	if _, err := ask("payloads", "get", hash); err == nil {
		t.Error("an erased payload is still there")
	}
}

// What was kept with consent can be read and erased when the policies are gone,
// and nothing more is kept. A policy's size is the limit, whatever it is.
func TestConsentWithdrawn(t *testing.T) {
	dir := t.TempDir()
	s := startServer(t, dir, `extensions::inquest::payloads={policies: [{services: ["bad-*", "chat-*"], max_size: 3000000}]}`)
	defer http.DefaultClient.CloseIdleConnections()
	ask := func(args ...string) (string, error) {
		var out bytes.Buffer
		root := newRootCommand()
		root.SetArgs(append(args, "--server", s.api))
		root.SetOut(&out)
		root.SetErr(&out)
		err := root.Execute()
		return out.String(), err
	}
	large := strings.Repeat("word ", 300_000) // 1.5 MB
	line, hash := inputLine(t, 1, large)
	// Over OTLP: a line of JSON has 1 MiB at most.
	if status, answer := s.post(t, "/v1/logs", "application/json", "", jsonLogs(jsonLog(time.Now(), strings.TrimSpace(line), ""))); status != http.StatusOK || strings.Contains(answer, "rejected") {
		t.Errorf("answered %d %s", status, answer)
	}
	if got, err := ask("payloads", "get", hash); err != nil || got != large {
		t.Errorf("payload of %d bytes, %v; want %d", len(got), err, len(large))
	}
	s.stop()
	s = startServer(t, dir)
	defer func() { s.stop() }()
	line, _ = inputLine(t, 2, "without consent")
	s.events(t, line)
	if got := s.count(t, `{record.type="log"} "payload.sha256":*`); got != 1 {
		t.Errorf("%d events name a payload, want 1", got)
	}
	if got, err := ask("payloads", "get", hash); err != nil || got != large {
		t.Errorf("payload of %d bytes, %v; want %d", len(got), err, len(large))
	}
	if got, err := ask("payloads", "erase", "--user", "ann"); err != nil || !strings.HasPrefix(got, "1 references removed, 1 payloads of 1500000 bytes erased") {
		t.Errorf("erase: %s, %v", got, err)
	}
}

func TestPayloadsConfig(t *testing.T) {
	f := func(setting, want string) {
		t.Helper()
		col, err := newCollector(serveOptions{data: t.TempDir(), sets: []string{"extensions::inquest::payloads=" + setting}})
		if err == nil {
			err = col.DryRun(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", setting, err, want)
		}
	}
	f(`{policies: [{services: [a]}], s3: {}}`, "endpoint is missing")
	f(`{policies: [{services: [a]}], s3: {endpoint: "http://localhost:9000", bucket: b}}`, "has a scheme")
	f(`{policies: [{services: [a]}], s3: {endpoint: "localhost:9000"}}`, "bucket is missing")
	f(`{policies: [{services: [a]}], s3: {endpoint: "localhost:9000", bucket: b, access_key: k}}`, "belong together")
	f(`{policies: [{services: [a]}], s3: {endpoint: "localhost:9000", bucket: b, acces_key: k}}`, "acces_key")
	f(`{policies: [{}]}`, "names no services")
	f(`{policies: [{services: [a]}], max_total: 0}`, "max_total is 0")
	f(`{policies: [{services: [a]}], max_age: -1h}`, "must be above 0")
}
