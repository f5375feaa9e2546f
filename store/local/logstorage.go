package local

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/VictoriaMetrics/VictoriaMetrics/lib/fs/fsutil"
	"github.com/VictoriaMetrics/VictoriaMetrics/lib/logger"
)

// logstorage has settings that belong to the process: command-line flags, which
// must have been parsed, and one log output. They are set once, before the
// first store is opened.
var (
	setupOnce sync.Once
	errSetup  error
	logTo     atomic.Pointer[slog.Logger]
)

// DefaultMemoryBytes bounds the caches of the record stores of this process and
// the state of one query's pipes (sorting, grouping).
const DefaultMemoryBytes = 512 << 20

func setupLogstorage(log *slog.Logger, memoryBytes int64) error {
	logTo.Store(log)
	setupOnce.Do(func() { errSetup = setFlags(memoryBytes) })
	if errSetup != nil {
		return errSetup
	}
	if fsutil.IsFsyncDisabled() && !testing.Testing() {
		return errors.New("DISABLE_FSYNC_FOR_TESTING is set in the environment: nothing would be durable; unset it")
	}
	return nil
}

func setFlags(memoryBytes int64) error {
	if !flag.Parsed() {
		// The library panics on flags that were not parsed. The arguments are
		// not its business: it sees none.
		if err := flag.CommandLine.Parse(nil); err != nil {
			return fmt.Errorf("cannot set up record storage: %w", err)
		}
	}
	for name, value := range map[string]string{
		"loggerLevel":             "WARN",
		"loggerDisableTimestamps": "true",
		"memory.allowedBytes":     fmt.Sprint(memoryBytes),
	} {
		if err := flag.Set(name, value); err != nil {
			return fmt.Errorf("cannot set up record storage: flag %s: %w", name, err)
		}
	}
	// Meant for tests, but the only way to its output.
	logger.SetOutputForTests(logWriter{})
	return nil
}

// logWriter passes lines "level\tlocation\tmessage" on to the logger of the
// store that was opened last.
type logWriter struct{}

func (logWriter) Write(p []byte) (int, error) {
	log := logTo.Load()
	if log == nil {
		return len(p), nil
	}
	parts := bytes.SplitN(bytes.TrimRight(p, "\n"), []byte("\t"), 3)
	if len(parts) != 3 {
		log.Warn(string(p), "component", "logstorage")
		return len(p), nil
	}
	level := slog.LevelError
	switch string(parts[0]) {
	case "info":
		level = slog.LevelInfo
	case "warn":
		level = slog.LevelWarn
	}
	log.Log(context.Background(), level, string(parts[2]), "component", "logstorage", "at", string(parts[1]))
	return len(p), nil
}
