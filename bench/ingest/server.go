package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// server is a running process under test.
type server struct {
	dir     string // its data
	records string // below dir: what counts as the records' store
	storage string // below dir: the same, as VictoriaLogs opens it
	logsURL string // OTLP over HTTP
	spanURL string
	grpc    string // address of OTLP over gRPC
	api     string // base URL of queries
	count   func(ctx context.Context) (int, error)
	settled func(ctx context.Context) (bool, error) // nothing is left to write; nil when it cannot tell

	cmd    *exec.Cmd
	out    *bytes.Buffer
	exited chan error
}

// start runs a server and waits until ready answers.
func (s *server) start(ctx context.Context, ready, path string, args ...string) error {
	s.out = &bytes.Buffer{}
	s.cmd = exec.Command(path, args...)
	s.cmd.Stdout, s.cmd.Stderr = s.out, s.out
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("cannot start %s: %w", path, err)
	}
	s.exited = make(chan error, 1)
	go func() { s.exited <- s.cmd.Wait() }()
	for deadline := time.Now().Add(time.Minute); ; {
		if _, err := get(ctx, ready); err == nil {
			return nil
		}
		select {
		case err := <-s.exited:
			return fmt.Errorf("%s ended at once: %w\n%s", path, err, s.output())
		case <-ctx.Done():
			return errors.Join(ctx.Err(), s.stop())
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return errors.Join(fmt.Errorf("%s does not answer at %s", path, ready), s.stop())
		}
	}
}

// stop ends the server as a service manager would.
func (s *server) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("the server is gone: %w", err)
	}
	select {
	case err := <-s.exited:
		if err != nil {
			return fmt.Errorf("the server failed: %w", err)
		}
		return nil
	case <-time.After(time.Minute):
		return errors.Join(errors.New("the server does not stop"), s.cmd.Process.Kill())
	}
}

// output returns the end of what a server printed; call it when it has stopped.
func (s *server) output() string {
	out := s.out.String()
	return out[max(0, len(out)-4000):]
}

// rest waits until the server has written and merged what it wants to: until
// its folder keeps its size for a while.
func (s *server) rest(ctx context.Context) error {
	const quiet = 8 * time.Second // longer than both servers' flush interval
	last, since := int64(-1), time.Now()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); {
		size, err := folderSize(s.dir)
		if err != nil {
			return err
		}
		settled := true
		if s.settled != nil {
			if settled, err = s.settled(ctx); err != nil {
				return err
			}
		}
		if size != last || !settled {
			last, since = size, time.Now()
		}
		if time.Since(since) > quiet {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(250 * time.Millisecond):
		}
	}
	return errors.New("the data folder does not come to rest")
}

// peakRSS is the largest resident memory so far, in bytes, mapped files included.
func (s *server) peakRSS() (int64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("cannot read the server's memory: %w", err)
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kb << 10, err
		}
	}
	return 0, errors.New("cannot read the server's memory: the system does not tell VmHWM")
}

// cpuTime is the processor time that the server has used, of all its threads.
func (s *server) cpuTime() (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("cannot read the server's processor time: %w", err)
	}
	// After the name, which may hold anything, utime and stime are fields 12 and
	// 13, in ticks of 10 ms.
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 13 {
		return 0, errors.New("cannot read the server's processor time: unknown form of /proc")
	}
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("cannot read the server's processor time: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

// freePorts returns addresses on localhost that are free now.
func freePorts(n int) ([]string, error) {
	addrs := make([]string, n)
	for i := range addrs {
		ln, err := net.Listen("tcp", "localhost:0")
		if err != nil {
			return nil, fmt.Errorf("cannot find a free port: %w", err)
		}
		defer ln.Close() // not before all are found
		addrs[i] = ln.Addr().String()
	}
	return addrs, nil
}

func get(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s: %.300s", url, resp.Status, body)
	}
	return body, err
}
