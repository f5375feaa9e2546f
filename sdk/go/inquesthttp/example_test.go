package inquesthttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	inquest "inquest.dev/sdk/go"
	"inquest.dev/sdk/go/inquesthttp"
)

func ExampleHandler() {
	h := inquesthttp.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println("serving", inquest.RequestID(r.Context()))
	}), inquesthttp.Options{})

	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("x-request-id", "r-1")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	fmt.Println("answered", w.Header().Get("x-request-id"))
	// Output:
	// serving r-1
	// answered r-1
}

func ExampleNewTransport() {
	client := http.Client{Transport: inquesthttp.NewTransport(nil, inquesthttp.Options{})}
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println("next service got", r.Header.Get("x-request-id"))
	}))
	defer srv.Close()
	defer client.CloseIdleConnections()

	req := httptest.NewRequest(http.MethodGet, srv.URL, nil)
	req.RequestURI = ""
	ctx := inquest.WithRequest(req.Context(), inquest.Request{ID: "r-1"})
	resp, err := client.Do(req.WithContext(ctx))
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()
	// Output: next service got r-1
}
