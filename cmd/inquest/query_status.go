package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

func newStatusCommand() *cobra.Command {
	var opts askOptions
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show the state of a server",
		Example: "  inquest status --output json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := opts.client()
			if err != nil {
				return err
			}
			s, err := c.Status(cmd.Context())
			if err != nil {
				return err
			}
			if opts.output == "json" {
				return printJSON(cmd.OutOrStdout(), s)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "inquest %s at %s\n", clean(s.Version), c.Server())
			return printTree(cmd.OutOrStdout(), s.Recorder)
		},
	}
	opts.register(cmd)
	return cmd
}

// printTree prints JSON one value a line, in the order in which it came, names
// of objects joined by dots.
func printTree(w io.Writer, data json.RawMessage) error {
	if len(data) == 0 || string(data) == "null" {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	return printNode(w, dec, nil)
}

func printNode(w io.Writer, dec *json.Decoder, path []string) error {
	tok, err := dec.Token()
	if err != nil {
		return fmt.Errorf("cannot read the status: %w", err)
	}
	delim, nested := tok.(json.Delim)
	if !nested {
		fmt.Fprintf(w, "%-32s %s\n", clean(strings.Join(path, ".")), clean(fmt.Sprint(tok)))
		return nil
	}
	for i := 0; dec.More(); i++ {
		name := fmt.Sprint(i)
		if delim == '{' {
			key, err := dec.Token()
			if err != nil {
				return fmt.Errorf("cannot read the status: %w", err)
			}
			name = fmt.Sprint(key)
		}
		if err := printNode(w, dec, append(path[:len(path):len(path)], name)); err != nil {
			return err
		}
	}
	_, err = dec.Token() // the closing bracket
	return err
}
