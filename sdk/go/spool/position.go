package spool

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
)

// position is how far a file is shipped.
type position struct {
	Offset int64 `json:"offset"` // bytes from the file's begin
	Done   bool  `json:"done"`   // nothing will follow
}

func posPath(path string) string { return strings.TrimSuffix(path, spoolSuffix) + posSuffix }

// readPosition returns how far the file at path is shipped; none is the begin.
func readPosition(path string) (position, error) {
	b, err := os.ReadFile(posPath(path))
	if errors.Is(err, os.ErrNotExist) {
		return position{}, nil
	}
	if err != nil {
		return position{}, err
	}
	var p position
	if err := json.Unmarshal(b, &p); err != nil || p.Offset < 0 {
		return position{}, fmt.Errorf("%s holds no position", posPath(path))
	}
	return p, nil
}

// writePosition stores p durably.
func writePosition(path string, p position) error {
	b, err := json.Marshal(p)
	if err == nil {
		err = replaceFile(posPath(path), append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("cannot store how far %s is shipped: %w", path, err)
	}
	return nil
}
