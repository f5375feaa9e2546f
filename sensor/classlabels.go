package sensor

import "strings"

// label returns the value of the first label that is there, in dotted or
// Prometheus form.
func label(l map[string]string, names ...string) string {
	for _, n := range names {
		if v := l[n]; v != "" {
			return v
		}
		if strings.IndexByte(n, '.') >= 0 {
			if v := l[promName(n)]; v != "" {
				return v
			}
		}
	}
	return ""
}

// refine corrects the class that a series' name tells by its labels: one name
// often counts successes and failures, or what is used and what is free.
func refine(c Class, s *Series) Class {
	if len(s.Labels) == 0 {
		return c
	}
	l := s.Labels
	switch c {
	case ClassTokens:
		switch label(l, "gen_ai.token.type") {
		case "input":
			return perRequest(s, ClassInput)
		case "output", "completion":
			return perRequest(s, ClassOutput)
		}
	case ClassTelemetry:
		if label(l, "error.type") != "" {
			return ClassLoss
		}
	case ClassThroughput:
		if failed(l) {
			return ClassErrors
		}
	case ClassPool, ClassConnections:
		if label(l, "db.client.connection.state", "state") == "idle" {
			return ClassFree
		}
	case ClassMemory, ClassDiskUse, ClassDisk, ClassCPU:
		switch label(l, "state", "system.memory.state", "system.filesystem.state", "cpu.mode", "mode") {
		case "free", "idle", "available", "iowait":
			return ClassFree
		}
	case ClassCacheHit:
		if label(l, "cache_state") == "miss" {
			return ClassCacheLookup
		}
	case ClassErrors:
		if strings.HasPrefix(s.Name, "hw") && label(l, "hw.type") == "gpu" {
			return ClassGPUError
		}
	case ClassRestart:
		if label(l, "reason") == "OOMKilled" {
			return ClassOOM
		}
	case ClassOther:
		return state(s.Name, l)
	}
	return c
}

// perRequest is the class of a histogram of tokens, whose mean or quantile is of
// one request; a plain counter is of all.
func perRequest(s *Series, c Class) Class {
	if s.Counter || strings.HasSuffix(s.Name, "_total") {
		return ClassTokens
	}
	return c
}

// failed reports whether labels say that what was counted did not succeed.
func failed(l map[string]string) bool {
	if label(l, "error.type") != "" {
		return true
	}
	switch label(l, "finished_reason", "status", "outcome") {
	case "abort", "error", "fail", "failed", "failure", "timeout":
		return true
	}
	code := label(l, "http.response.status_code", "status_code", "status", "code", "http_status")
	return len(code) == 3 && code[0] == '5'
}

// state reads metrics that count things by their state.
func state(name string, l map[string]string) Class {
	switch s := label(l, "State", "phase"); {
	case !strings.Contains(name, "ray_") && !strings.Contains(name, "kube_"):
	case strings.HasPrefix(s, "PENDING"), strings.HasPrefix(s, "DEPENDENCIES"), s == "Pending":
		return ClassQueue
	case s == "DEAD", s == "RESTARTING", s == "FAILED", s == "Failed":
		return ClassRestart
	}
	if c := label(l, "condition"); strings.HasSuffix(c, "Pressure") && label(l, "status") == "true" {
		return ClassPressure
	}
	return ClassOther
}
