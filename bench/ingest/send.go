package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
)

// errRetry is in the error of a sender that was told to try again.
var errRetry = errors.New("told to try again")

// sender sends one encoded request and returns when it is acknowledged in full.
type sender func(ctx context.Context, body []byte) error

// newSenders opens n senders with a connection each.
func newSenders(n int, c contender, srv *server) (sends []sender, closeAll func(), err error) {
	var closers []func()
	closeAll = func() {
		for _, f := range closers {
			f()
		}
	}
	for range n {
		if !c.grpc {
			url := srv.logsURL
			if c.load.spans {
				url = srv.spanURL
			}
			tr := &http.Transport{DisableCompression: true}
			closers = append(closers, tr.CloseIdleConnections)
			sends = append(sends, httpSender(&http.Client{Transport: tr, Timeout: 2 * time.Minute}, url))
			continue
		}
		conn, err := grpc.NewClient(srv.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			closeAll()
			return nil, nil, fmt.Errorf("cannot connect: %w", err)
		}
		closers = append(closers, func() { conn.Close() })
		method := "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
		if c.load.spans {
			method = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
		}
		sends = append(sends, grpcSender(conn, method))
	}
	return sends, closeAll, nil
}

func httpSender(client *http.Client, url string) sender {
	return func(ctx context.Context, body []byte) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/x-protobuf")
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		switch {
		case err != nil:
			return err
		case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode == http.StatusServiceUnavailable:
			return fmt.Errorf("%w: %s: %q", errRetry, resp.Status, answer)
		case resp.StatusCode != http.StatusOK:
			return fmt.Errorf("the server answers %s: %q", resp.Status, answer)
		}
		return complete(answer)
	}
}

// rawCodec sends requests that are encoded already.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	b, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("cannot send a %T", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(b)}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("cannot receive a %T", v)
	}
	*b = data.Materialize()
	return nil
}

func grpcSender(conn *grpc.ClientConn, method string) sender {
	return func(ctx context.Context, body []byte) error {
		var answer []byte
		err := conn.Invoke(ctx, method, body, &answer, grpc.ForceCodecV2(rawCodec{}))
		if status.Code(err) == codes.Unavailable {
			return fmt.Errorf("%w: %w", errRetry, err)
		}
		if err != nil {
			return err
		}
		return complete(answer)
	}
}

// complete makes sure that an answer does not speak of rejected records: field
// 1 is the partial success, which is empty or absent when all is well.
func complete(answer []byte) error {
	if len(answer) == 0 || bytes.Equal(answer, []byte{1<<3 | 2, 0}) {
		return nil
	}
	return fmt.Errorf("the server took a batch only in part: %q", answer)
}

// sent tells about the requests of one measurement.
type sent struct {
	took    []time.Duration // of each, retries included, sorted
	retries int
}

func (s *sent) quantile(q float64) time.Duration {
	if len(s.took) == 0 {
		return 0
	}
	return s.took[min(int(q*float64(len(s.took))), len(s.took)-1)]
}

// sendAll sends each batch once and returns when all are acknowledged.
func sendAll(ctx context.Context, batches [][]byte, sends []sender) (*sent, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next, retries atomic.Int64
	took := make([]time.Duration, len(batches))
	var wg sync.WaitGroup
	for _, send := range sends {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(batches)); i = next.Add(1) - 1 {
				start := time.Now()
				err := send(ctx, batches[i])
				for ; errors.Is(err, errRetry) && ctx.Err() == nil; err = send(ctx, batches[i]) {
					retries.Add(1)
					time.Sleep(100 * time.Millisecond)
				}
				if err != nil {
					cancel(err)
					return
				}
				took[i] = time.Since(start)
			}
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("cannot send: %w", err)
	}
	slices.Sort(took)
	return &sent{took: took, retries: int(retries.Load())}, nil
}
