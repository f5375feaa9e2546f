package spool

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// watchdogEnv marks the process that is to be the watchdog.
const watchdogEnv = "INQUEST_WATCHDOG"

const (
	watchdogLog = "watchdog.log"
	// maxWatchdogLog ends the log: what follows is dropped, the counters of the
	// spool tell of it.
	maxWatchdogLog = 1 << 20
)

// WatchdogOptions say what a watchdog does. Zero values mean the defaults.
type WatchdogOptions struct {
	// Endpoint and Headers are those of [ShipOptions].
	Endpoint string
	Headers  map[string]string
	// Keep and MaxTotalBytes are those of [ShipOptions].
	Keep          time.Duration
	MaxTotalBytes int64
	// Linger is how long the watchdog goes on trying after the application has
	// ended and while the spool is not empty. What is left then waits on disk for
	// the next shipper. Default 10 minutes.
	Linger time.Duration
	// OnError is told when the watchdog could not be started or has ended.
	// Default: nothing. What it meets itself is in watchdog.log in the spool.
	OnError func(error) `json:"-"`
	// Command is the program to start. It has to call [RunIfWatchdog] first of
	// all. Default: the running program.
	Command string `json:"-"`
}

// watchdogOrder is what the watchdog reads from its standard input.
type watchdogOrder struct {
	Dir string
	WatchdogOptions
}

// RunIfWatchdog does the watchdog's work when the process was started as one by
// [StartWatchdog], and returns true when that work is done: the program is to
// end then. Otherwise it returns false at once. Call it first of all in main:
//
//	func main() {
//		if spool.RunIfWatchdog() {
//			return
//		}
//		…
//	}
func RunIfWatchdog() bool {
	if os.Getenv(watchdogEnv) == "" {
		return false
	}
	in := bufio.NewReader(os.Stdin)
	var order watchdogOrder
	text, err := in.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(text, &order)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "inquest watchdog: cannot read the order:", err)
		return true
	}
	log := openWatchdogLog(order.Dir)
	defer log.close()
	if err := watch(order, in, log.print); err != nil {
		log.print(err)
	}
	return true
}

// watch ships until in ends, which it does when the application is gone, and then
// until the spool is empty.
func watch(order watchdogOrder, in io.Reader, onError func(error)) error {
	s, err := NewShipper(order.Dir, ShipOptions{
		Endpoint: order.Endpoint, Headers: order.Headers, Keep: order.Keep,
		MaxTotalBytes: order.MaxTotalBytes, OnError: onError,
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		io.Copy(io.Discard, in) // the end is all that matters
	}()
	if err := s.Run(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	linger := order.Linger
	if linger <= 0 {
		linger = 10 * time.Minute
	}
	ctx, cancel = context.WithTimeout(context.Background(), linger)
	defer cancel()
	if err := s.Drain(ctx); err != nil {
		return fmt.Errorf("the application has ended and not all is shipped, it stays in %s: %w", order.Dir, err)
	}
	return nil
}

// Watchdog is a process that ships a spool and outlives the application.
type Watchdog struct {
	cancel context.CancelFunc
	ended  chan struct{}
}

// StartWatchdog starts a process that ships the spool in dir for as long as this
// process lives, and afterwards until the spool is empty, however this process
// ends. It is started again when it dies. The process is the head of a session of
// its own, so a signal to this one's group does not reach it; a service manager
// that kills by control group does, and should run inquest-ship as a unit instead.
func StartWatchdog(dir string, opts WatchdogOptions) (*Watchdog, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot start the watchdog: %w", err)
	}
	if _, err := logsURL(opts.Endpoint); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot create the spool's folder: %w", err)
	}
	if opts.Command == "" {
		if opts.Command, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("cannot start the watchdog: %w", err)
		}
	}
	if opts.OnError == nil {
		opts.OnError = func(error) {}
	}
	order, err := json.Marshal(watchdogOrder{dir, opts})
	if err != nil {
		return nil, fmt.Errorf("cannot start the watchdog: %w", err)
	}
	p, err := startProcess(opts.Command, order)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := &Watchdog{cancel: cancel, ended: make(chan struct{})}
	go w.supervise(ctx, p, opts, order)
	return w, nil
}

// Close lets the watchdog ship what is left and waits for its end, or for ctx's:
// the watchdog then goes on alone.
func (w *Watchdog) Close(ctx context.Context) error {
	w.cancel()
	select {
	case <-w.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the watchdog is still shipping and goes on alone: %w", ctx.Err())
	}
}

// supervise starts the process anew when it dies, until ctx ends.
func (w *Watchdog) supervise(ctx context.Context, p *process, opts WatchdogOptions, order []byte) {
	defer close(w.ended)
	for {
		select {
		case <-ctx.Done():
			p.in.Close()
			<-p.ended
			return
		case <-p.ended:
			opts.OnError(fmt.Errorf("the watchdog has ended and is started again: %w", p.err))
		}
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Second):
			}
			next, err := startProcess(opts.Command, order)
			if err == nil {
				p = next
				break
			}
			opts.OnError(err)
		}
	}
}

// process is a running watchdog. It lives until in is closed, which the kernel
// does when this process dies.
type process struct {
	in    io.WriteCloser
	ended chan struct{}
	err   error // final when ended is closed
}

func startProcess(command string, order []byte) (*process, error) {
	cmd := exec.Command(command)
	cmd.Env = append(os.Environ(), watchdogEnv+"=1")
	cmd.SysProcAttr = ownSession()
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("cannot start the watchdog: %w", err)
	}
	p := &process{in: in, ended: make(chan struct{})}
	_, werr := in.Write(append(order, '\n')) // through the pipe: headers may hold secrets
	go func() {
		defer close(p.ended)
		p.err = errors.Join(cmd.Wait(), werr)
		if p.err == nil {
			p.err = errors.New("exit status 0")
		}
	}()
	return p, nil
}

// logFile is the watchdog's log, of limited size.
type logFile struct {
	mu   sync.Mutex
	file *os.File
	size int64
}

func openWatchdogLog(dir string) *logFile {
	flags := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	path := filepath.Join(dir, watchdogLog)
	info, err := os.Stat(path)
	if err == nil && info.Size() > maxWatchdogLog/2 {
		flags |= os.O_TRUNC
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return &logFile{} // shipping matters more than its log
	}
	l := &logFile{file: f}
	if info, err := f.Stat(); err == nil {
		l.size = info.Size()
	}
	return l
}

func (l *logFile) print(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil || l.size > maxWatchdogLog {
		return
	}
	n, _ := fmt.Fprintf(l.file, "%s %d %v\n", time.Now().UTC().Format(time.RFC3339), os.Getpid(), err)
	l.size += int64(n)
}

func (l *logFile) close() {
	if l.file != nil {
		l.file.Close()
	}
}
