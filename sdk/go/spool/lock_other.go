//go:build !unix

package spool

import (
	"errors"
	"os"
	"syscall"
)

// tryLock fails: without a lock a shipper cannot tell a dead writer from a
// living one.
func tryLock(*os.File) (bool, error) {
	return false, errors.New("the spool needs flock, which this system lacks")
}

// ownSession is a thing of Unix.
func ownSession() *syscall.SysProcAttr { return nil }
