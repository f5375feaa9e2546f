package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"inquest/catalog"
	"inquest/record"
	"inquest/schema"
	"inquest/sensor/kinds"
	"inquest/verdict/explain"
)

// catalogOptions are the flags of commands that read the catalogue of faults.
type catalogOptions struct {
	folders []string
	output  string
}

func (o *catalogOptions) register(cmd *cobra.Command, forms string) {
	registerCatalog(cmd, &o.folders)
	first, _, _ := strings.Cut(forms, ",")
	cmd.Flags().StringVarP(&o.output, "output", "o", first, "`form` of the output: "+forms)
	cmd.PreRunE = func(*cobra.Command, []string) error {
		for _, f := range strings.Split(forms, ", ") {
			if o.output == f {
				return nil
			}
		}
		return fmt.Errorf("--output is %q: it is one of %s", o.output, forms)
	}
}

// registerCatalog adds the flag that names users' folders of faults.
func registerCatalog(cmd *cobra.Command, folders *[]string) {
	cmd.Flags().StringSliceVar(folders, "catalog", nil, "`folder` with faults of your own (docs/catalog.md); may be given more than once")
}

func newCatalogCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "catalog",
		Short: "Show and check the faults that the engine knows",
		Long: `catalog shows the faults that the engine knows, says in words what it looks for,
and checks files of your own. docs/catalog.md says how to write one.`,
	}
	cmd.AddCommand(newCatalogLintCommand(), newCatalogListCommand(), newCatalogShowCommand(),
		newCatalogExplainCommand(), newCatalogKindsCommand(), newCatalogSchemaCommand())
	return cmd
}

func newCatalogLintCommand() *cobra.Command {
	var o catalogOptions
	cmd := &cobra.Command{
		Use:   "lint [DIR|FILE…]",
		Short: "Check faults of your own",
		Long: `lint checks files together with the built-in faults and reports all problems, with
file and line. The exit status is 1 if there are any. Notes are about what is allowed
and may not be meant; they change nothing. Without an argument, the folders of
--catalog are checked, or the built-in faults.`,
		Example: "  inquest catalog lint faults/\n  inquest catalog lint faults/my-fault.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := catalog.Check(append(o.folders, args...)...)
			if err != nil {
				return err
			}
			if o.output == "json" {
				err = printJSON(cmd.OutOrStdout(), r)
			} else {
				err = printLint(cmd.OutOrStdout(), r)
			}
			if err == nil && len(r.Problems) > 0 {
				return &exitError{code: 1}
			}
			return err
		},
	}
	o.register(cmd, "text, json")
	return cmd
}

func printLint(w io.Writer, r *catalog.Report) error {
	for _, p := range r.Problems {
		fmt.Fprintln(w, clean(p.String()))
	}
	for _, n := range r.Notes {
		n.Text = "note: " + n.Text
		fmt.Fprintln(w, clean(n.String()))
	}
	what := fmt.Sprintf("%d files and the built-in faults", r.Files)
	if r.Files == 0 {
		what = "the built-in faults"
	}
	_, err := fmt.Fprintf(w, "%s: %d problems, %d notes\n", what, len(r.Problems), len(r.Notes))
	return err
}

func newCatalogListCommand() *cobra.Command {
	var o catalogOptions
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the faults",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := catalog.WithFolders(o.folders...)
			if err != nil {
				return err
			}
			if o.output == "json" {
				return printJSON(cmd.OutOrStdout(), c.Faults)
			}
			tab := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(tab, "ID\tTITLE\tAT\tREFINES")
			for _, f := range c.Faults {
				fmt.Fprintf(tab, "%s\t%s\t%s\t%s\n", f.ID, clean(f.Title), kindsOf(f.At), strings.Join(f.Refines, ", "))
			}
			return tab.Flush()
		},
	}
	o.register(cmd, "text, json")
	return cmd
}

func kindsOf(at []record.EntityKind) string {
	out := make([]string, len(at))
	for i, k := range at {
		out[i] = string(k)
	}
	return strings.Join(out, ", ")
}

func newCatalogShowCommand() *cobra.Command {
	var o catalogOptions
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a fault as it is written",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := catalog.WithFolders(o.folders...)
			if err != nil {
				return err
			}
			f, err := c.Find(args[0])
			if err != nil {
				return err
			}
			switch w := cmd.OutOrStdout(); o.output {
			case "json":
				return printJSON(w, f)
			case "text":
				return printFault(w, f)
			default:
				_, err = w.Write(f.Source())
				return err
			}
		},
	}
	o.register(cmd, "yaml, json, text")
	return cmd
}

func printFault(w io.Writer, f *catalog.Fault) error {
	from := f.File()
	if from == "" {
		from = "built in"
	}
	fmt.Fprintf(w, "%s: %s (%s)\n\n%s\n\nAt: %s\n", f.ID, clean(f.Title), from, clean(strings.TrimSpace(f.Mechanism)), kindsOf(f.At))
	if len(f.Refines) > 0 {
		fmt.Fprintf(w, "Refines: %s\n", strings.Join(f.Refines, ", "))
	}
	fmt.Fprintln(w)
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "EVIDENCE\tQUADRANT\tKINDS\tWHERE\tDIRECTION\tSEEN\t")
	for i := range f.Expect {
		e := &f.Expect[i]
		role := ""
		switch {
		case e.Essential:
			role = "essential"
		case e.Absent:
			role = "absent"
		case e.Symptom:
			role = "symptom"
		}
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\t%g\t%s\n", clean(e.Text), e.Quadrant, strings.Join(e.Kinds, ", "), e.Where, e.Direction, e.Seen, role)
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nRemedy: %s\nCheck: %s\n", clean(strings.TrimSpace(f.Remedy)), clean(strings.TrimSpace(f.Check)))
	return err
}

func newCatalogExplainCommand() *cobra.Command {
	var o catalogOptions
	cmd := &cobra.Command{
		Use:   "explain ID",
		Short: "Say in words what the engine looks for",
		Long: `explain says what must be there for a fault to be named, what speaks for it and how
much, what must not be there, what tells it from others, what to do, and which data
must be recorded to find it.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := catalog.WithFolders(o.folders...)
			if err != nil {
				return err
			}
			x, err := explain.Fault(c, args[0])
			if err != nil {
				return err
			}
			if o.output == "json" {
				return printJSON(cmd.OutOrStdout(), x)
			}
			return x.WriteText(cmd.OutOrStdout())
		},
	}
	o.register(cmd, "text, json")
	return cmd
}

func newCatalogKindsCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "kinds",
		Short: "List the kinds of findings that faults can expect",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch output {
			case "json":
				return printJSON(cmd.OutOrStdout(), kinds.All())
			case "text":
				tab := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
				fmt.Fprintln(tab, "QUADRANT\tKIND\tWHAT IS MEASURED")
				for _, k := range kinds.All() {
					fmt.Fprintf(tab, "%s\t%s\t%s\n", k.Quadrant, k.Name, k.Text)
				}
				return tab.Flush()
			}
			return fmt.Errorf("--output is %q: it is text or json", output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "`form` of the output: text, json")
	return cmd
}

func newCatalogSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of a fault's file, for editors",
		Example: "  inquest catalog schema > fault.schema.json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(schema.Fault())
			return err
		},
	}
}
