package spool_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	"inquest.dev/sdk/go/spool"
)

// Write a record, which is on disk when Append returns, and ship it.
func Example() {
	dir, err := os.MkdirTemp("", "spool")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	w, err := spool.Open(dir, spool.Options{})
	if err != nil {
		panic(err)
	}
	if err := w.Append([]byte(`{"body":{"stringValue":"hello"}}`)); err != nil {
		panic(err)
	}
	w.Close()

	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer srv.Close()
	s, err := spool.NewShipper(dir, spool.ShipOptions{Endpoint: srv.URL})
	if err != nil {
		panic(err)
	}
	err = s.Drain(context.Background())
	fmt.Println(s.Stats().Shipped, "shipped,", err)
	// Output: 1 shipped, <nil>
}
