package api

import (
	"net/http"
	"strings"
)

// kind says what a request costs and so which limits hold for it.
type kind int

const (
	cheap       kind = iota // answers from memory
	query                   // asks a store
	investigate             // asks the stores many times
)

// dialect is the form in which a route answers errors.
type dialect int

const (
	native dialect = iota
	jaeger
)

// route is one path of the API.
type route struct {
	path    string
	methods []string
	kind    kind
	dialect dialect
	handle  func(w http.ResponseWriter, r *http.Request) error
}

var (
	get     = []string{http.MethodGet}
	getPost = []string{http.MethodGet, http.MethodPost}
	post    = []string{http.MethodPost}
)

func (s *server) routes() []route {
	return []route{
		{"/healthz", get, cheap, native, s.healthz},
		{"/api/v1/openapi.yaml", get, cheap, native, s.openapi},
		{"/api/v1/status", get, cheap, native, s.status},

		{"/api/v1/records/query", getPost, query, native, s.queryRecords},
		{"/api/v1/traces/{traceID}", get, query, native, s.trace},
		{"/api/v1/drilldown", get, query, native, s.drilldown},

		{"/api/v1/investigations", get, query, native, s.listInvestigations},
		{"/api/v1/investigations", post, investigate, native, s.investigate},
		{"/api/v1/investigations/{id}", get, query, native, s.investigation},

		{"/api/v1/deadletters", get, query, native, s.listLetters},
		{"/api/v1/deadletters/counts", get, query, native, s.countLetters},
		{"/api/v1/deadletters/redrive", post, investigate, native, s.redriveLetters},
		{"/api/v1/deadletters/discard", post, investigate, native, s.discardLetters},
		{"/api/v1/payloads/{sum}", get, query, native, s.payload},
		{"/api/v1/payloads/erase", post, investigate, native, s.erasePayloads},
		{"/api/v1/coverage", get, investigate, native, s.coverage},
		{"/api/v1/schema/ai-event", get, cheap, native, s.eventSchema},

		{"/api/v1/query", getPost, query, native, s.promInstant},
		{"/api/v1/query_range", getPost, query, native, s.promRange},
		{"/api/v1/query_exemplars", getPost, query, native, s.promExemplars},
		{"/api/v1/series", getPost, query, native, s.promSeries},
		{"/api/v1/labels", getPost, query, native, s.promLabels},
		{"/api/v1/label/{name}/values", get, query, native, s.promLabelValues},
		{"/api/v1/metadata", get, query, native, s.promMetadata},
		{"/api/v1/format_query", getPost, cheap, native, s.promFormat},
		{"/api/v1/status/buildinfo", get, cheap, native, s.promBuildInfo},
		{"/api/v1/rules", get, cheap, native, s.promRules},
		{"/api/v1/alerts", get, cheap, native, s.promAlerts},

		{"/jaeger/api/services", get, query, jaeger, s.jaegerServices},
		{"/jaeger/api/services/{service}/operations", get, query, jaeger, s.jaegerServiceOperations},
		{"/jaeger/api/operations", get, query, jaeger, s.jaegerOperations},
		{"/jaeger/api/traces", get, query, jaeger, s.jaegerSearch},
		{"/jaeger/api/traces/{traceID}", get, query, jaeger, s.jaegerTrace},
		{"/jaeger/api/dependencies", get, query, jaeger, s.jaegerDependencies},
	}
}

// noRoute answers what no route takes: it tells a wrong method from a wrong path.
func (s *server) noRoute(w http.ResponseWriter, r *http.Request) {
	for _, rt := range s.routes() {
		if !matchPath(rt.path, r.URL.Path) {
			continue
		}
		allowed := s.allowed(rt.path)
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		writeError(w, rt.dialect, &apiError{
			code: http.StatusMethodNotAllowed, kind: kindBadData,
			err:  errorf("%s is not a method of %s", r.Method, rt.path),
			hint: "use " + strings.Join(allowed, " or "),
		})
		return
	}
	writeError(w, native, &apiError{
		code: http.StatusNotFound, kind: kindNotFound,
		err:  errorf("there is nothing at %s", r.URL.Path),
		hint: "GET /api/v1/openapi.yaml lists what there is",
	})
}

func (s *server) allowed(path string) []string {
	var methods []string
	for _, rt := range s.routes() {
		if rt.path == path {
			methods = append(methods, rt.methods...)
		}
	}
	return methods
}

// matchPath tells whether path is of the pattern's form, where {…} stands for
// one segment.
func matchPath(pattern, path string) bool {
	p, q := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(p) != len(q) {
		return false
	}
	for i := range p {
		if p[i] != q[i] && (!strings.HasPrefix(p[i], "{") || q[i] == "") {
			return false
		}
	}
	return true
}
