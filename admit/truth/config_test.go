package truth

import (
	"strings"
	"testing"
	"time"
)

func TestValidate(t *testing.T) {
	good := Service{Name: "s", Path: "/models/v3"}
	f := func(c Config, want string) {
		t.Helper()
		err := c.Validate()
		switch {
		case want == "" && err != nil:
			t.Errorf("unexpected error: %v", err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("error %v, want %q", err, want)
		case err != nil && strings.Contains(err.Error(), "token"):
			t.Errorf("the error shows a secret: %v", err)
		}
	}
	one := func(s Service) Config { return Config{Services: []Service{s}} }
	f(Config{}, "")
	f(one(good), "")
	f(one(Service{Name: "s", Healthz: []string{"http://h:1/healthz"}, Version: "v3"}), "")
	f(Config{Interval: time.Millisecond}, "interval is 1ms: set it between")
	f(Config{Timeout: time.Hour}, "timeout is")
	f(Config{Concurrency: -1}, "concurrency is -1")
	f(Config{HashRate: 1}, "hash_rate is 1")
	f(Config{MaxFiles: -1}, "max_files is -1")
	f(Config{LoadGrace: -1}, "load_grace")
	f(Config{Services: []Service{good, good}}, "twice")
	f(Config{Services: make([]Service, mostServices+1)}, "the limit is 1000")
	f(one(Service{Path: "/m"}), "service 1 (\"\"): it has no name")
	f(one(Service{Name: "s"}), "set healthz, path or both")
	f(one(Service{Name: "s", Healthz: []string{"http://h/?token"}}), "set version, or path")
	f(one(Service{Name: "s", Healthz: []string{"ftp://h/?token"}, Version: "v3"}), "healthz address 1 is not of the form")
	f(one(Service{Name: "s", Healthz: []string{"http://[token"}, Version: "v3"}), "healthz address 1 is not of the form")
	f(one(Service{Name: "s", Path: "/m", Version: "latest"}), "names no fixed version")
	f(one(Service{Name: "s", Path: "m"}), "is not absolute")
	f(one(Service{Name: "s", Healthz: []string{"http://h"}, Version: "v", SHA256: sum("x")}), "set path")
	f(one(Service{Name: "s", Path: "/m", SHA256: "abc"}), "64 hexadecimal digits")
	f(one(Service{Name: "s", Path: "/m", Ignore: []string{"["}}), "malformed")
	f(one(Service{Name: "s", Path: "/m", VersionPaths: make([]string, 21)}), "21 entries")
}
