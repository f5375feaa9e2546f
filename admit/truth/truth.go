// Package truth checks that what is served is what was meant: the version that
// a service tells at its health address, the real path and the hashes of the
// model's files, and when they changed, against the configuration and against
// what records claim.
package truth

import (
	"time"

	"inquest/record"
)

// Reason is a short stable code that says why something is not validated.
type Reason string

// Reasons why a service or a record contradicts the truth: Validated is false.
const (
	// ReasonVersionMismatch: the service, a record or the path tells another
	// version than the one configured.
	ReasonVersionMismatch Reason = "version.mismatch"
	// ReasonPathSymlink: the configured path leads through a symbolic link to
	// another version.
	ReasonPathSymlink Reason = "path.symlink"
	// ReasonPathMismatch: a record tells another real path than the configured
	// path has.
	ReasonPathMismatch Reason = "path.mismatch"
	// ReasonFileChanged: a file is not as it was when the service loaded it.
	ReasonFileChanged Reason = "file.changed"
	// ReasonFileMismatch: a file's hash is not the one of the manifest.
	ReasonFileMismatch Reason = "file.mismatch"
	// ReasonDeviceMismatch: a record tells another device than the one configured.
	ReasonDeviceMismatch Reason = "device.mismatch"
	// ReasonDeviceFallback: a record tells that the model fell back to another device.
	ReasonDeviceFallback Reason = "device.fallback"
)

// Reasons why the truth cannot be told: Validated is nil.
const (
	// ReasonNotConfigured: no check is configured for the service.
	ReasonNotConfigured Reason = "service.unknown"
	// ReasonPending: files are being hashed, or nothing was looked at yet.
	ReasonPending Reason = "pending"
	// ReasonStale: the last look is too old to count, as on a file system that hangs.
	ReasonStale Reason = "state.stale"
	// ReasonVersionLatest: the version told is "latest" or none.
	ReasonVersionLatest Reason = "version.latest"
	// ReasonUnreachable: a health address does not answer.
	ReasonUnreachable Reason = "healthz.unreachable"
	// ReasonPathMissing: the configured path does not exist.
	ReasonPathMissing Reason = "path.missing"
	// ReasonPathUnreadable: the path or a file of it cannot be read, or is beyond
	// the limits.
	ReasonPathUnreadable Reason = "path.unreadable"
	// ReasonFileTouched: a file's metadata changed after the load, and its hash
	// at load is not known.
	ReasonFileTouched Reason = "file.touched"
	// ReasonFileChanging: a file changed or vanished while it was read.
	ReasonFileChanging Reason = "file.changing"
	// ReasonManifestUnreadable: the manifest cannot be read.
	ReasonManifestUnreadable Reason = "manifest.unreadable"
)

// severityOf orders reasons: what explains the others comes first. Reasons that
// contradict come before those that leave it open.
var severityOf = map[Reason]int{
	ReasonPathSymlink:        1,
	ReasonVersionMismatch:    2,
	ReasonFileMismatch:       3,
	ReasonFileChanged:        4,
	ReasonUnreachable:        10,
	ReasonVersionLatest:      11,
	ReasonPathMissing:        12,
	ReasonPathUnreadable:     13,
	ReasonManifestUnreadable: 14,
	ReasonFileTouched:        15,
	ReasonFileChanging:       16,
	ReasonPending:            17,
}

// contradicts tells reasons that make Validated false from those that leave it open.
func (r Reason) contradicts() bool { s, ok := severityOf[r]; return ok && s < 10 }

// passing tells reasons of a look that is not complete yet from those that last.
func (r Reason) passing() bool { return r == ReasonPending || r == ReasonFileChanging }

// Problem is one thing that a look at a service found.
type Problem struct {
	Reason Reason `json:"reason"`
	// Detail says it in a sentence, with both sides.
	Detail string `json:"detail"`
	// Quadrant is the view from which it was seen.
	Quadrant record.Quadrant `json:"quadrant"`
	// Subject is the path or address that it speaks of.
	Subject string `json:"subject,omitempty"`
	// Since is when it came about, where the file system tells it.
	Since time.Time `json:"since,omitzero"`
	// Version is the version that is really there, where that is known.
	Version string `json:"version,omitempty"`
}

// State is what the last look at a service found. It is not changed after it
// was published and may be shared; do not write to it.
type State struct {
	Service string `json:"service"`
	// Validated is true where everything that is configured was looked at and
	// fits, false where something contradicts, nil where that cannot be told.
	Validated *bool `json:"validated"`
	// Reason and Detail are those of the first of Problems; empty without one.
	Reason   Reason    `json:"reason,omitempty"`
	Detail   string    `json:"detail,omitempty"`
	Problems []Problem `json:"problems,omitempty"`
	Facts    Facts     `json:"facts"`
	// Checked is when the look ended; zero before the first.
	Checked time.Time `json:"checked,omitzero"`
}

// Facts are what was seen.
type Facts struct {
	ConfiguredVersion string `json:"configured_version,omitempty"`
	// Told is the version that each health address tells, in their order.
	Told []Told `json:"told,omitempty"`
	Path string `json:"path,omitempty"`
	// RealPath is Path with all symbolic links resolved.
	RealPath string `json:"real_path,omitempty"`
	// PathVersion is the version that the real path's names tell.
	PathVersion string `json:"path_version,omitempty"`
	// SHA256 is the hash of the model's file. Of a folder it is the hash of the
	// lines "<hash>  <name>\n" of its files in the order of their names, which is
	// what sha256sum prints.
	SHA256 string `json:"sha256,omitempty"`
	Files  int    `json:"files,omitempty"`
	Bytes  int64  `json:"bytes,omitempty"`
	// LoadedAt is when the service loaded the model or, with LoadedBy
	// "process start", when it started; zero when unknown.
	LoadedAt time.Time `json:"loaded_at,omitzero"`
	LoadedBy string    `json:"loaded_by,omitempty"`
	// hashes are those of the files, to compare a record's claim with; nil while
	// they are not known.
	hashes map[string]bool
	// aliases are other names of the configured version, such as the revision
	// that a branch stands for.
	aliases []string
}

// Told is what one health address answered.
type Told struct {
	URL     string `json:"url"` // without secrets
	Version string `json:"version"`
	Error   string `json:"error,omitempty"`
}

func yes() *bool { v := true; return &v }
func no() *bool  { v := false; return &v }
