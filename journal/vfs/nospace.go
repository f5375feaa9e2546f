package vfs

import (
	"errors"
	"syscall"
)

// IsNoSpace tells whether err means that there is no room: on the disk, or
// within the user's quota.
func IsNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
