#!/bin/sh
# Brings Temporal's two PostgreSQL databases to the schema of this image; makes them
# when they are not there. The password comes from SQL_PASSWORD, never as an argument.
set -eu

tool() {
	temporal-sql-tool --plugin "$SQL_PLUGIN" --endpoint "$SQL_HOST" --port "$SQL_PORT" --user "$SQL_USER" --database "$@"
}

bring_up() {
	database=$1
	versions=$SCHEMA_DIR/$2/versioned
	if tool "$database" update-schema --schema-dir "$versions"; then
		return
	fi
	tool "$database" create-database
	tool "$database" setup-schema --version 0.0
	tool "$database" update-schema --schema-dir "$versions"
}

bring_up temporal temporal
bring_up temporal_visibility visibility
