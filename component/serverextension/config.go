package serverextension

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/units"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/confignet"
	"go.opentelemetry.io/collector/config/configoptional"

	"inquest/admit/truth"
	"inquest/alert"
	"inquest/catalog"
	"inquest/recorder"
)

// Config are the extension's settings.
type Config struct {
	// Path is the data folder. Default: ./data.
	Path string `mapstructure:"path"`
	// Retention is how long records and samples are kept. Default: 720h. What is
	// older when it arrives is refused, so importing an old incident needs a
	// longer one.
	Retention time.Duration `mapstructure:"retention"`
	// SyncInterval is the longest time between two checkpoints of the stores. It
	// bounds the work after a crash, not what survives it. Default: 30s.
	SyncInterval time.Duration `mapstructure:"sync_interval"`
	// Aliases is a file that adds to the table of aliases (docs/aliases.md).
	// Default: none, which leaves the table that is part of the program.
	Aliases string `mapstructure:"aliases"`
	// Catalog are folders with faults of users' own, which are added to those that
	// come with inquest or replace them (docs/catalog.md). Default: none.
	Catalog []string `mapstructure:"catalog"`
	// Events says how AI events are checked (docs/ai-events.md).
	Events EventsConfig `mapstructure:"events"`
	// Payloads says whose raw inputs are kept (docs/payloads.md). Default: nobody's.
	Payloads PayloadsConfig `mapstructure:"payloads"`
	// Alerts are the webhooks that are told of dead letters and of what the truth
	// check finds (docs/alerts.md).
	Alerts alert.Config `mapstructure:"alerts"`
	// TruthCheck compares models as served with what was meant (docs/truth-check.md).
	TruthCheck truth.Config `mapstructure:"truth_check"`
	// Disk bounds the use of the disk.
	Disk DiskConfig `mapstructure:"disk"`
	// API is the HTTP server of the query API; without it there is none.
	// Default: localhost:4319.
	API configoptional.Optional[confighttp.ServerConfig] `mapstructure:"api"`
}

// DiskConfig bounds the use of the disk. Sizes are like 512MiB or 20GiB; 0
// means no bound for the settings that begin with max.
type DiskConfig struct {
	// MinFree is the room left free; below it senders are told to retry.
	// Default: 512MiB.
	MinFree Size `mapstructure:"min_free"`
	// MaxJournal bounds what is acknowledged and not yet in the stores. Default: 4GiB.
	MaxJournal Size `mapstructure:"max_journal"`
	// MaxRecords and MaxSamples bound the stores; the oldest data goes first.
	// Defaults: 20GiB and 10GiB.
	MaxRecords Size `mapstructure:"max_records"`
	MaxSamples Size `mapstructure:"max_samples"`
}

// Size is a number of bytes, written as 512MiB or as a plain number.
type Size int64

// UnmarshalText reads a size.
func (s *Size) UnmarshalText(text []byte) error {
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		var b units.Base2Bytes
		b, err = units.ParseBase2Bytes(string(text))
		n = int64(b)
	}
	if err != nil || n < 0 {
		return fmt.Errorf("%q is not a size: write it like 512MiB or 20GiB", text)
	}
	*s = Size(n)
	return nil
}

// MarshalText writes a size as [Size.UnmarshalText] reads it.
func (s Size) MarshalText() ([]byte, error) {
	return []byte(units.Base2Bytes(s).String()), nil
}

func defaultConfig() *Config {
	d := recorder.DefaultConfig()
	server := confighttp.NewDefaultServerConfig()
	server.NetAddr = confignet.AddrConfig{Transport: confignet.TransportTypeTCP, Endpoint: defaultEndpoint}
	return &Config{
		Path:         d.Dir,
		Retention:    d.Retention,
		SyncInterval: d.SyncInterval,
		Disk: DiskConfig{
			MinFree:    Size(d.MinFreeBytes),
			MaxJournal: Size(d.MaxJournalBytes),
			MaxRecords: Size(d.MaxRecordBytes),
			MaxSamples: Size(d.MaxSampleBytes),
		},
		Events:   EventsConfig{Validate: true, Decisions: true},
		Payloads: PayloadsConfig{MaxTotal: 10 << 30, MaxAge: 720 * time.Hour},
		API:      configoptional.Some(server),
	}
}

// Validate says what is wrong with the settings.
func (c *Config) Validate() error {
	var errs []error
	if c.Path == "" {
		errs = append(errs, errors.New("path is empty: name a folder for the data"))
	}
	if c.Retention < 24*time.Hour {
		errs = append(errs, fmt.Errorf("retention is %s: it must be at least 24h", c.Retention))
	}
	if c.SyncInterval < 100*time.Millisecond {
		errs = append(errs, fmt.Errorf("sync_interval is %s: it must be at least 100ms", c.SyncInterval))
	}
	if c.Disk.MaxJournal != 0 && c.Disk.MaxJournal < 128<<20 {
		errs = append(errs, errors.New("disk::max_journal must be at least 128MiB, room for two segments"))
	}
	if _, err := c.faults(); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, c.Alerts.Validate(), c.TruthCheck.Validate())
	return errors.Join(errs...)
}

func (c *Config) recorderConfig() recorder.Config {
	return recorder.Config{
		Dir:             c.Path,
		Retention:       c.Retention,
		SyncInterval:    c.SyncInterval,
		Aliases:         c.Aliases,
		MaxRecordBytes:  int64(c.Disk.MaxRecords),
		MaxSampleBytes:  int64(c.Disk.MaxSamples),
		MaxJournalBytes: int64(c.Disk.MaxJournal),
		MinFreeBytes:    int64(c.Disk.MinFree),
	}
}

// faults reads the catalogue.
func (c *Config) faults() (*catalog.Catalog, error) {
	faults, err := catalog.WithFolders(c.Catalog...)
	if err != nil {
		return nil, fmt.Errorf("catalog: %w\nCorrect the files, which inquest catalog lint %s checks, or take the folder out of the setting", err, strings.Join(c.Catalog, " "))
	}
	return faults, nil
}
