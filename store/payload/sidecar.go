package payload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// sidecar is the blob beside a payload: what it is and who refers to it.
type sidecar struct {
	Size   int64     `json:"size"`
	Newest time.Time `json:"newest"`
	More   bool      `json:"more,omitempty"`
	Refs   []ref     `json:"refs"`
}

type ref struct {
	Service string    `json:"service,omitempty"`
	User    string    `json:"user,omitempty"` // hexadecimal [UserKey]
	Request string    `json:"request,omitempty"`
	Time    time.Time `json:"time"`
	Type    string    `json:"type,omitempty"`
	Input   string    `json:"input,omitempty"` // hexadecimal [Sum]
}

// sidecarMagic begins a sidecar; after it come the CRC-32C of what follows the
// line, in hexadecimal, and the JSON.
const sidecarMagic = "inquest-refs 1 "

// maxSidecar bounds what is read as a sidecar, in bytes: room for the largest
// number of references that anyone would set.
const maxSidecar = 64 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (s *sidecar) encode() ([]byte, error) {
	body, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("cannot encode references: %w", err)
	}
	return fmt.Appendf(nil, "%s%08x\n%s\n", sidecarMagic, crc32.Checksum(append(body, '\n'), castagnoli), body), nil
}

func parseSidecar(data []byte) (*sidecar, error) {
	line, body, found := bytes.Cut(data, []byte{'\n'})
	sum, isOurs := strings.CutPrefix(string(line), sidecarMagic)
	if !found || !isOurs {
		return nil, errors.New("not a list of references")
	}
	if want := fmt.Sprintf("%08x", crc32.Checksum(body, castagnoli)); sum != want {
		return nil, fmt.Errorf("the list of references has checksum %.16q, not %q", sum, want)
	}
	var s sidecar
	if err := json.Unmarshal(body, &s); err != nil {
		return nil, fmt.Errorf("cannot read the list of references: %w", err)
	}
	if s.Size < 0 {
		return nil, fmt.Errorf("the list of references tells a size of %d", s.Size)
	}
	for _, r := range s.Refs {
		if _, err := parseUserKey(r.User); err != nil {
			return nil, err
		}
	}
	return &s, nil
}

func refOf(m Meta, user UserKey) ref {
	r := ref{
		Service: cut(m.Service),
		User:    user.String(),
		Request: cut(m.RequestID),
		Time:    m.Time.UTC(),
		Type:    cut(m.ContentType),
	}
	if !m.InputHash.IsZero() {
		r.Input = m.InputHash.String()
	}
	return r
}

// cut shortens a name to [MaxName] bytes and makes it UTF-8, as JSON would, so
// that it compares equal after reading.
func cut(name string) string {
	name = strings.ToValidUTF8(name, "\uFFFD")
	if len(name) <= MaxName {
		return name
	}
	n := MaxName
	for !utf8.RuneStart(name[n]) {
		n--
	}
	return name[:n]
}

// add adds r and tells whether that changed anything. References from before
// oldest go, as do those beyond limit.
func (s *sidecar) add(r ref, oldest time.Time, limit int) bool {
	same := func(o ref) bool {
		return o.Service == r.Service && o.User == r.User && o.Request == r.Request && o.Type == r.Type && o.Input == r.Input
	}
	i := slices.IndexFunc(s.Refs, same)
	if i >= 0 && !r.Time.After(s.Refs[i].Time) {
		return false
	}
	if i >= 0 {
		s.Refs = slices.Delete(s.Refs, i, i+1)
	}
	s.Refs = append(s.Refs, r)
	s.expire(oldest)
	slices.SortStableFunc(s.Refs, func(a, b ref) int { return a.Time.Compare(b.Time) })
	for len(s.Refs) > limit {
		s.dropOne()
	}
	if r.Time.After(s.Newest) {
		s.Newest = r.Time
	}
	return true
}

// expire takes references from before oldest away, but leaves the last.
func (s *sidecar) expire(oldest time.Time) {
	if last := len(s.Refs) - 1; last > 0 {
		added := s.Refs[last]
		s.Refs = slices.DeleteFunc(s.Refs[:last], func(o ref) bool { return o.Time.Before(oldest) })
		s.Refs = append(s.Refs, added)
	}
}

// dropOne takes away the oldest reference whose user has another. When all are
// of different users, the oldest goes and the payload counts as shared for good.
func (s *sidecar) dropOne() {
	count := map[string]int{}
	for _, r := range s.Refs {
		count[r.User]++
	}
	i := slices.IndexFunc(s.Refs, func(r ref) bool { return count[r.User] > 1 })
	if i < 0 {
		i, s.More = 0, true
	}
	s.Refs = slices.Delete(s.Refs, i, i+1)
}

// erase takes away the user's references that are not later than upTo and
// returns how many there were.
func (s *sidecar) erase(user UserKey, upTo time.Time) int {
	before := len(s.Refs)
	s.Refs = slices.DeleteFunc(s.Refs, func(r ref) bool { return r.User == user.String() && !r.Time.After(upTo) })
	return before - len(s.Refs)
}

// users are the different known users, without the unknown one.
func (s *sidecar) users() []UserKey {
	var users []UserKey
	for _, r := range s.Refs {
		// parseSidecar has checked it.
		if u, err := parseUserKey(r.User); err == nil && u != (UserKey{}) && !slices.Contains(users, u) {
			users = append(users, u)
		}
	}
	return slices.Clip(users)
}

func (s *sidecar) info(sum Sum) Info {
	info := Info{Sum: sum, Size: s.Size, Newest: s.Newest, More: s.More}
	for _, r := range s.Refs {
		user, _ := parseUserKey(r.User)
		input, _ := ParseSum(r.Input)
		info.Refs = append(info.Refs, Ref{
			Service: r.Service, User: user, RequestID: r.Request,
			Time: r.Time, ContentType: r.Type, InputHash: input,
		})
	}
	return info
}
