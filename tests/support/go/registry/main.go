// Calls a schema registry with franz-go's client, and prints what it got as JSON: one object.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/sr"
)

const (
	narrow = `{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}`
	wider  = `{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"int","default":0}]}`
	broken = `{"type":"record","name":"R","fields":[{"name":"a","type":"string"}]}`
	part   = "syntax = \"proto3\";\npackage p;\nmessage Part {\n  int32 a = 1;\n}\n"
	whole  = "syntax = \"proto3\";\nimport \"part.proto\";\nmessage Whole {\n  p.Part part = 1;\n}\n"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func code(err error) int {
	var refused *sr.ResponseError
	if errors.As(err, &refused) {
		return refused.ErrorCode
	}
	return 0
}

func main() {
	ctx := context.Background()
	client, err := sr.NewClient(sr.URLs(os.Args[1]))
	check(err)
	found := map[string]any{}

	one, err := client.CreateSchema(ctx, "go-value", sr.Schema{Schema: narrow})
	check(err)
	two, err := client.CreateSchema(ctx, "go-value", sr.Schema{Schema: wider})
	check(err)
	found["versions"] = []int{one.Version, two.Version}
	again, err := client.LookupSchema(ctx, "go-value", sr.Schema{Schema: narrow})
	check(err)
	found["same id"] = again.ID == one.ID
	_, err = client.CreateSchema(ctx, "go-value", sr.Schema{Schema: broken})
	found["refused"] = code(err)
	_, err = client.SchemaByVersion(ctx, "go-nothing", 1)
	found["missing"] = code(err)
	compatible, err := client.CheckCompatibility(sr.WithParams(ctx, sr.Verbose), "go-value", -1, sr.Schema{Schema: broken})
	check(err)
	found["compatible"] = compatible.Is
	found["reasons"] = len(compatible.Messages) > 0
	text, err := client.SchemaTextByVersion(ctx, "go-value", -1)
	check(err)
	found["latest"] = text == wider
	byID, err := client.SchemaByID(ctx, one.ID)
	check(err)
	found["by id"] = byID.Schema == narrow
	subjects, err := client.SubjectsByID(ctx, one.ID)
	check(err)
	found["subjects of id"] = subjects

	_, err = client.CreateSchema(ctx, "part.proto", sr.Schema{Schema: part, Type: sr.TypeProtobuf})
	check(err)
	references := []sr.SchemaReference{{Name: "part.proto", Subject: "part.proto", Version: 1}}
	full, err := client.CreateSchema(ctx, "go-proto", sr.Schema{Schema: whole, Type: sr.TypeProtobuf, References: references})
	check(err)
	users, err := client.SchemaReferences(ctx, "part.proto", 1)
	check(err)
	found["referenced by"] = len(users) == 1 && users[0].ID == full.ID
	_, err = client.DeleteSubject(ctx, "part.proto", sr.SoftDelete)
	found["still referenced"] = code(err)

	set := client.SetCompatibility(ctx, sr.SetCompatibility{Level: sr.CompatFull}, "go-value")
	check(set[0].Err)
	found["level"] = client.Compatibility(ctx, "go-value")[0].Level.String()
	check(client.ResetCompatibility(ctx, "go-value")[0].Err)
	check(client.SetMode(ctx, sr.ModeReadOnly, "go-value")[0].Err)
	_, err = client.CreateSchema(ctx, "go-value", sr.Schema{Schema: `"int"`})
	found["read only"] = code(err)
	check(client.ResetMode(ctx, "go-value")[0].Err)
	check(client.SetMode(ctx, sr.ModeImport, "go-import")[0].Err)
	imported, err := client.CreateSchemaWithIDAndVersion(ctx, "go-import", sr.Schema{Schema: `"bytes"`}, 9000, 7)
	check(err)
	found["imported"] = []int{imported.ID, imported.Version}

	check(client.DeleteSchema(ctx, "go-value", 1, sr.SoftDelete))
	versions, err := client.SubjectVersions(ctx, "go-value")
	check(err)
	found["after deletion"] = versions
	all, err := client.SubjectVersions(sr.WithParams(ctx, sr.ShowDeleted), "go-value")
	check(err)
	found["with deleted"] = all
	types, err := client.SupportedTypes(ctx)
	check(err)
	found["types"] = len(types)
	contexts, err := client.Contexts(ctx)
	check(err)
	found["contexts"] = contexts

	serde := sr.NewSerde()
	serde.Register(two.ID, two, sr.EncodeFn(func(any) ([]byte, error) { return []byte{2, 4}, nil }))
	framed, err := serde.Encode(two)
	check(err)
	found["framed"] = fmt.Sprintf("%x", framed)
	found["id"] = two.ID
	check(json.NewEncoder(os.Stdout).Encode(found))
}
