package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"inquest/api/apitype"
)

func newPayloadsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "payloads",
		Short: "Raw inputs that services consented to keep: show one, erase a user's",
	}
	var ask askOptions
	show := &cobra.Command{
		Use:   "get SHA256",
		Short: "Write a payload to the standard output",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := ask.client()
			if err != nil {
				return err
			}
			return c.Payload(cmd.Context(), cmd.OutOrStdout(), args[0])
		},
	}
	ask.register(show)
	cmd.AddCommand(show, newPayloadsErase())
	return cmd
}

func newPayloadsErase() *cobra.Command {
	var ask askOptions
	var user string
	cmd := &cobra.Command{
		Use:   "erase",
		Short: "Erase the raw inputs of a user",
		Long: `erase removes the payloads that only this user refers to, the user's
references to others, and the user's dead letters. It tells what remains and until
when; docs/payloads.md says what it does not reach.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := ask.client()
			if err != nil {
				return err
			}
			out, err := c.ErasePayloads(cmd.Context(), user)
			if err != nil {
				return err
			}
			if ask.output == "json" {
				return printJSON(cmd.OutOrStdout(), out)
			}
			return writeErased(cmd.OutOrStdout(), out)
		},
	}
	ask.register(cmd)
	cmd.Flags().StringVar(&user, "user", "", "user `id`, as in business.user_id")
	_ = cmd.MarkFlagRequired("user") // the flag is there
	return cmd
}

func writeErased(w io.Writer, out apitype.ErasedPayloads) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d references removed, %d payloads of %d bytes erased, %d stay for others; %d dead letters removed.\n",
		out.References, len(out.Removed)+len(out.Unreadable), out.Bytes, len(out.Shared), out.DeadLetters)
	for _, r := range out.Remains {
		until := "by itself never"
		if !r.Until.IsZero() {
			until = "until " + r.Until.Local().Format("2006-01-02 15:04")
		}
		fmt.Fprintf(&b, "Remains: %s, %d, %s: %s\n", r.What, r.Count, until, r.Detail)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
