package api

import (
	"net/http"
	"runtime"
)

// promVersion is the version of Prometheus whose API this is: Grafana decides
// by it what it may ask for.
const promVersion = "3.16.0"

func (s *server) promBuildInfo(w http.ResponseWriter, _ *http.Request) error {
	return writeSuccess(w, map[string]string{
		"version":     promVersion,
		"revision":    "inquest " + s.cfg.Version,
		"branch":      "",
		"buildUser":   "",
		"buildDate":   "",
		"goVersion":   runtime.Version(),
		"application": "inquest",
	})
}

// promRules answers that there are no rules; Grafana asks.
func (s *server) promRules(w http.ResponseWriter, _ *http.Request) error {
	return writeSuccess(w, map[string][]any{"groups": {}})
}

// promAlerts answers that there are no alerts; Grafana asks.
func (s *server) promAlerts(w http.ResponseWriter, _ *http.Request) error {
	return writeSuccess(w, map[string][]any{"alerts": {}})
}

func (s *server) healthz(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, err := w.Write([]byte("ok\n"))
	return err
}

func (s *server) status(w http.ResponseWriter, _ *http.Request) error {
	var state any
	if s.cfg.Status != nil {
		state = s.cfg.Status()
	}
	return writeSuccess(w, map[string]any{"version": s.cfg.Version, "recorder": state})
}
