package payload

import "strings"

// Names of blobs.
const (
	formatName = "format"
	objectsDir = "objects"
	erasedDir  = "erased"
	refsSuffix = ".refs"
)

// contentName is where a payload lies: two levels of 256 folders each, so that
// none gets large.
func contentName(s Sum) string {
	t := s.String()
	return objectsDir + "/" + t[:2] + "/" + t[2:4] + "/" + t
}

func refsName(s Sum) string { return contentName(s) + refsSuffix }

func erasureName(u UserKey) string { return erasedDir + "/" + u.String() }

// parseName tells whose content or references a blob below objects holds.
func parseName(name string) (sum Sum, refs, ok bool) {
	base := name[strings.LastIndexByte(name, '/')+1:]
	base, refs = strings.CutSuffix(base, refsSuffix)
	sum, err := ParseSum(base)
	return sum, refs, err == nil && strings.HasPrefix(name, contentName(sum))
}
