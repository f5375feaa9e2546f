package truth

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Claim is what one record says of the model that it used. What it does not say
// is empty.
type Claim struct {
	ModelVersion      string
	ConfiguredVersion string
	RealPath          string
	FileSHA256        string
	Device            string
	Fallback          bool
}

// Judge compares what a record of a service claims with the last look at the
// service. Validated is true where the record names a fixed version, nothing
// contradicts, and the service's state is validated; false where the record or
// the state contradicts; nil where it cannot be told. Reason and detail say why
// it is not true. It takes no lock.
func (k *Checker) Judge(service string, c Claim) (validated *bool, reason Reason, detail string) {
	w := k.watches[service]
	if w == nil {
		if r, d := c.itself(); r != "" {
			return no(), r, d
		}
		return nil, ReasonNotConfigured, "no truth check is configured for service " + service
	}
	st := w.state.Load()
	stale := k.stale(st)
	if r, d := c.itself(); r != "" {
		return no(), r, d
	}
	if r, d := c.against(&w.s, st, stale); r != "" {
		return no(), r, d
	}
	switch {
	case stale:
		return nil, ReasonStale, fmt.Sprintf("service %s was looked at last at %s", service, stamp(st.Checked))
	case st.Validated == nil || !*st.Validated:
		return st.Validated, st.Reason, st.Detail
	case isLatest(c.ModelVersion):
		return nil, ReasonVersionLatest, fmt.Sprintf("the record tells model version %q, which is no fixed version", c.ModelVersion)
	}
	return st.Validated, "", ""
}

// stale tells a state that is too old to count.
func (k *Checker) stale(st *State) bool {
	return !st.Checked.IsZero() && time.Since(st.Checked) > 3*k.conf.Interval+time.Minute
}

// itself finds what a record contradicts itself in.
func (c *Claim) itself() (Reason, string) {
	switch {
	case c.Fallback && c.Device != "":
		return ReasonDeviceFallback, "the record tells that the model fell back to device " + c.Device
	case c.Fallback:
		return ReasonDeviceFallback, "the record tells that the model fell back to another device"
	case c.ConfiguredVersion != "" && !isLatest(c.ConfiguredVersion) && !isLatest(c.ModelVersion) && !sameVersion(c.ModelVersion, c.ConfiguredVersion):
		return ReasonVersionMismatch, fmt.Sprintf("the record tells model version %s, and that version %s was configured", c.ModelVersion, c.ConfiguredVersion)
	}
	return "", ""
}

// against finds what a record contradicts the configuration or the state in.
func (c *Claim) against(s *Service, st *State, stale bool) (Reason, string) {
	f := &st.Facts
	mismatch := func(format string, args ...any) (Reason, string) {
		return ReasonVersionMismatch, fmt.Sprintf(format, args...)
	}
	want := f.ConfiguredVersion
	if want == "" {
		want = s.Version // before the first look
	}
	if want != "" {
		if !isLatest(c.ModelVersion) && !f.accepts(c.ModelVersion, want) {
			return mismatch("the record tells model version %s, configured is version %s", c.ModelVersion, want)
		}
		if !isLatest(c.ConfiguredVersion) && !f.accepts(c.ConfiguredVersion, want) {
			return mismatch("the record tells that version %s was configured, inquest knows version %s", c.ConfiguredVersion, want)
		}
	}
	if s.Device != "" && c.Device != "" && !fits(s.Device, c.Device) {
		return ReasonDeviceMismatch, fmt.Sprintf("the record tells device %s, configured is %s", c.Device, s.Device)
	}
	if stale || st.Checked.IsZero() {
		return "", ""
	}
	if told, ok := f.told(c.ModelVersion); !ok {
		return mismatch("the record tells model version %s, the service tells version %s at %s", c.ModelVersion, told.Version, told.URL)
	}
	if c.RealPath != "" && f.RealPath != "" && !f.holds(c.RealPath) {
		return ReasonPathMismatch, fmt.Sprintf("the record tells real path %s, the configured path leads to %s", c.RealPath, f.RealPath)
	}
	if c.FileSHA256 != "" && f.hashes != nil && !f.hashes[c.FileSHA256] && !f.hashes[strings.ToLower(c.FileSHA256)] {
		return ReasonFileChanged, fmt.Sprintf("the record tells sha256 %s, no file of %s has it", short(c.FileSHA256), f.RealPath)
	}
	return "", ""
}

// accepts tells whether a version is the one that is meant, by any of its names.
func (f *Facts) accepts(v, want string) bool {
	return sameVersion(v, want) || slices.ContainsFunc(f.aliases, func(a string) bool { return sameVersion(v, a) })
}

// told tells whether a health address tells that version; without one that
// tells any, every version is right. Else it returns one that tells another.
func (f *Facts) told(v string) (other Told, ok bool) {
	if isLatest(v) {
		return Told{}, true
	}
	for _, t := range f.Told {
		if t.Error != "" || isLatest(t.Version) {
			return Told{}, true // it may be the one that does not tell
		}
		if sameVersion(t.Version, v) || len(f.aliases) > 0 && f.accepts(v, f.ConfiguredVersion) && f.accepts(t.Version, f.ConfiguredVersion) {
			return Told{}, true
		}
		other = t
	}
	return other, other.URL == ""
}

// holds tells whether a path is the real path or lies in its folder.
func (f *Facts) holds(path string) bool {
	path = filepath.Clean(path)
	return path == f.RealPath || strings.HasPrefix(path, f.RealPath+string(filepath.Separator)) ||
		path == filepath.Dir(f.RealPath) // of a model that is one file
}

// fits tells whether a device is the configured one or a unit of it, such as
// "cuda:1" of "cuda".
func fits(configured, device string) bool {
	configured, device = strings.ToLower(configured), strings.ToLower(device)
	rest, ok := strings.CutPrefix(device, configured)
	return ok && (rest == "" || rest[0] == ':' || rest[0] == '/')
}
