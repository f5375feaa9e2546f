package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// measurement is one run of one server.
type measurement struct {
	records int
	// acked is the time until the last batch was acknowledged, visible until a
	// query counted every record.
	acked, visible time.Duration
	cpu            time.Duration // of the server until visible
	p50, p99       time.Duration // of one request
	retries        int
	recordBytes    int64 // of the records' store, at rest
	totalBytes     int64 // of the whole data folder, at rest
	mergedBytes    int64 // of the records' store after a forced merge; 0 when not measured
	peakRSS        int64
}

// measure starts the contender's server on an empty folder, sends everything,
// and stops it.
func measure(ctx context.Context, o options, c contender, dir string, merge bool) (m measurement, err error) {
	if err := os.RemoveAll(dir); err != nil {
		return m, err
	}
	srv, err := c.launch(ctx, o, dir)
	if err != nil {
		return m, err
	}
	defer func() {
		if e := srv.stop(); err == nil {
			err = e
		}
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, srv.output())
		} else if merge {
			m.mergedBytes, err = mergedSize(ctx, o, srv)
		}
	}()
	before, err := srv.cpuTime()
	if err != nil {
		return m, err
	}
	m.records = c.load.records
	if err := m.send(ctx, o, c, srv); err != nil {
		return m, err
	}
	after, err := srv.cpuTime()
	if err != nil {
		return m, err
	}
	m.cpu = after - before
	if err := srv.rest(ctx); err != nil {
		return m, err
	}
	if m.totalBytes, err = folderSize(srv.dir); err != nil {
		return m, err
	}
	if m.recordBytes, err = folderSize(filepath.Join(srv.dir, srv.records)); err != nil {
		return m, err
	}
	m.peakRSS, err = srv.peakRSS()
	return m, err
}

func (m *measurement) send(ctx context.Context, o options, c contender, srv *server) error {
	sends, closeAll, err := newSenders(o.senders, c, srv)
	if err != nil {
		return err
	}
	defer closeAll()
	start := time.Now()
	s, err := sendAll(ctx, c.load.batches, sends)
	if err != nil {
		return err
	}
	m.acked = time.Since(start)
	m.p50, m.p99, m.retries = s.quantile(0.5), s.quantile(0.99), s.retries
	for {
		n, err := srv.count(ctx)
		if err != nil {
			return err
		}
		if n == m.records {
			break
		}
		if n > m.records || time.Since(start)-m.acked > 2*time.Minute {
			return fmt.Errorf("%d records were acknowledged, %d are stored", m.records, n)
		}
		time.Sleep(20 * time.Millisecond)
	}
	m.visible = time.Since(start)
	return nil
}

// mergedSize is the size of a stopped server's records when they are merged as
// far as they can be. Both keep them in one format, so VictoriaLogs does it.
func mergedSize(ctx context.Context, o options, stopped *server) (int64, error) {
	dir := filepath.Join(stopped.dir, stopped.storage)
	srv, err := startVictoriaLogs(ctx, o, dir)
	if err != nil {
		return 0, err
	}
	_, err = get(ctx, srv.api+"/internal/force_merge")
	if err == nil {
		err = srv.rest(ctx)
	}
	if e := srv.stop(); err == nil {
		err = e
	}
	if err != nil {
		return 0, fmt.Errorf("cannot merge: %w", err)
	}
	return folderSize(dir)
}

// folderSize adds up the sizes of all files below dir. Files that go away
// meanwhile do not count.
func folderSize(dir string) (int64, error) {
	var total int64
	err := filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil {
			if os.IsNotExist(err) {
				return nil
			}
			return err
		}
		if d.IsDir() {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			if os.IsNotExist(err) {
				return nil
			}
			return err
		}
		total += info.Size()
		return nil
	})
	return total, err
}
