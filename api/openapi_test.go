package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// readOpenAPI reads the file once, as a document and as schemas.
var readOpenAPI = sync.OnceValues(func() (doc map[string]any, err error) {
	if err = yaml.Unmarshal(OpenAPI, &doc); err != nil {
		return nil, err
	}
	// The schema library wants numbers as JSON has them.
	data, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return v.(map[string]any), nil
})

func openAPIDocument(t testing.TB) map[string]any {
	t.Helper()
	doc, err := readOpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// schemas are those compiled so far, by pointer.
var schemas sync.Map

func schemaAt(t testing.TB, ptr string) *jsonschema.Schema {
	t.Helper()
	if s, ok := schemas.Load(ptr); ok {
		return s.(*jsonschema.Schema)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("openapi.json", openAPIDocument(t)); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("openapi.json" + ptr)
	if err != nil {
		t.Fatal(err)
	}
	schemas.Store(ptr, schema)
	return schema
}

func TestOpenAPIHasEveryRoute(t *testing.T) {
	var inFile, inCode []string
	for path, ops := range openAPIDocument(t)["paths"].(map[string]any) {
		for method := range ops.(map[string]any) {
			inFile = append(inFile, strings.ToUpper(method)+" "+path)
		}
	}
	for _, r := range (&server{}).routes() {
		for _, m := range r.methods {
			inCode = append(inCode, m+" "+r.path)
		}
	}
	slices.Sort(inFile)
	slices.Sort(inCode)
	if !slices.Equal(inFile, inCode) {
		t.Errorf("the file has\n%s\nthe code has\n%s", strings.Join(inFile, "\n"), strings.Join(inCode, "\n"))
	}
}

// checkSchema validates an answer against what the file says of its route.
func checkSchema(t *testing.T, method, path string, w *httptest.ResponseRecorder) {
	t.Helper()
	media, _, _ := strings.Cut(w.Header().Get("Content-Type"), ";")
	if media != "application/json" {
		return
	}
	response := fmt.Sprint(w.Code)
	op := openAPIDocument(t)["paths"].(map[string]any)[path].(map[string]any)[strings.ToLower(method)].(map[string]any)
	ptr := "#/paths/" + strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(path) + "/" + strings.ToLower(method) + "/responses/" + response + "/content/application~1json/schema"
	if _, ok := op["responses"].(map[string]any)[response]; !ok {
		name := "Error"
		if strings.HasPrefix(path, "/jaeger") {
			name = "JaegerError"
		}
		ptr = "#/components/responses/" + name + "/content/application~1json/schema"
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(w.Body.Bytes()))
	if err != nil {
		t.Fatalf("%s %s: not JSON: %v: %.300s", method, path, err, w.Body)
	}
	if err := schemaAt(t, ptr).Validate(v); err != nil {
		t.Errorf("%s %s answers %d, not as the OpenAPI file says: %v\n%.1000s", method, path, w.Code, err, w.Body)
	}
}

// routeOf finds the route that takes a request.
func routeOf(t *testing.T, method, target string) string {
	t.Helper()
	path, _, _ := strings.Cut(target, "?")
	for _, r := range (&server{}).routes() {
		if slices.Contains(r.methods, method) && matchPath(r.path, path) {
			return r.path
		}
	}
	t.Fatalf("no route for %s %s", method, path)
	return ""
}

// askChecked asks, checks the status and validates the answer's form.
func askChecked(t *testing.T, h http.Handler, code int, method, target string, header map[string]string, body string) *httptest.ResponseRecorder {
	t.Helper()
	w := ask(t, h, method, target, header, body)
	if w.Code != code {
		t.Errorf("%s %s answers %d, want %d: %.500s", method, target, w.Code, code, w.Body)
	}
	checkSchema(t, method, routeOf(t, method, target), w)
	return w
}
