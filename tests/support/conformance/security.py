"""The guarantees of docs/explanation/security.md, each by its first words, and the tests that check it.

Tests in `tests/server/security/` are named without a path; others with the path of their module in `tests/`.
"""

from typing import Final

GUARANTEES: Final[dict[str, tuple[str, ...]]] = {
    # Requests cannot choose the servers that are contacted
    "For files, nothing that a query": (
        "test_no_query_makes_files_reach_out",
        "query/test_service::test_what_passes_reaches_nothing",
    ),
    "No parameter or header": ("test_no_parameter_or_header_names_a_source",),
    "Parameters and pragmas that make": (
        "test_no_parameter_or_header_names_a_source",
        "test_a_pragma_that_fetches_is_refused_before_an_upstream",
        "server/sparql/test_protocol::test_forwarded",
    ),
    "Queries that are registered": (
        "server/streams/test_queries::test_what_is_refused",
        "server/streams/test_queries::test_services_of_a_watch_are_those_of_its_endpoint",
    ),
    "With `service` set, `SERVICE`": (
        "test_a_list_of_services_binds_an_upstream_too",
        "query/test_service::test_policies",
        "query/test_service::test_loads",
        "query/test_service::test_what_passes_reaches_what_it_may",
    ),
    "With `service` set, functions": (
        "server/test_virtuoso::test_deny_keeps_it_from_fetching",
        "query/test_service::test_functions_that_reach_out",
    ),
    "A host name with": (
        "sparql/client/test_addresses::test_a_name_with_any_address_that_is_not_public_is_refused",
        "sparql/client/test_addresses::test_the_connection_is_checked_whatever_the_resolver_said",
        "sparql/client/test_addresses::test_is_public",
    ),
    "Redirects to another origin": (
        "sparql/sources/http/test_upstream_answers::test_redirects_to_elsewhere",
        "test_credentials_go_to_the_upstream_only",
    ),
    "Proxy variables of the environment": (
        "sparql/sources/http/test_upstream::test_the_environment_names_no_proxy",
    ),
    # Nothing is written without permission
    "Without `update`, updates are": ("test_updates_are_refused",),
    "Percent-encoding and case cannot": ("test_percent_signs_hide_no_update",),
    "Queries over streams are": (
        "server/streams/test_queries::test_registering_needs_its_own_permission",
        "server/streams/test_queries::test_who_may_register_need_not_publish",
    ),
    "Where publishing or registering": (
        "server/streams/test_queries::test_pages_of_other_sites_change_nothing_on_loopback",
    ),
    "No client can publish": (
        "server/streams/test_queries::test_the_output_is_a_stream_like_others",
    ),
    # Headers and secrets are not leaked
    "Of a client's headers, only": (
        "test_client_headers_stay_here",
        "test_headers_go_on_where_that_is_configured",
        "sparql/sources/http/test_upstream::test_request_headers",
    ),
    "Of an upstream's headers, only": (
        "test_upstream_headers_stay_there",
        "sparql/sources/http/test_upstream_answers::test_response_headers",
        "sparql/sources/http/test_upstream_answers::test_headers_that_come_more_than_once",
    ),
    "An upstream's status is": (
        "sparql/sources/http/test_upstream_answers::test_a_status_that_is_no_answer",
    ),
    "Credentials are only sent": (
        "test_credentials_go_to_the_upstream_only",
        "server/runtime/test_config::test_what_is_shown_holds_no_secrets",
        "server/runtime/test_config::test_errors_hold_no_secrets",
    ),
    "An HTML page of an": (
        "test_pages_for_browsers_cannot_act",
        "sparql/sources/http/test_upstream_answers::test_pages_for_browsers",
    ),
    "The upstream's query form, which": ("server/test_virtuoso::test_a_browser_gets_the_form",),
    "The server's own page only": (
        "server/pages/test_endpoint::test_the_policy_is_strict",
        "server/pages/test_endpoint::test_nothing_in_the_files_names_another_host_or_reads_html",
        "server/pages/test_hostile::test_nothing_runs",
        "server/pages/test_hostile::test_nothing_runs_in_tables_and_graphs",
        "server/pages/test_hostile::test_what_is_shared_does_not_run",
    ),
    "Queries that are typed, linked, saved": (
        "server/pages/state/test_state::test_open_queries",
        "server/pages/state/test_state::test_saved_queries_and_history",
        "server/pages/state/test_state::test_what_others_wrote_into_the_storage",
    ),
    "The server's own page never": (
        "server/pages/test_messages::test_a_cut_answer_is_never_shown_as_complete",
        "server/pages/test_answers::test_a_cut_table_is_never_shown_as_complete",
        "server/pages/test_answers::test_a_cut_download_is_not_saved",
    ),
    "Every response but those": ("test_security_headers_are_on_every_response",),
    "Scripts of other origins": (
        "test_other_origins_never_get_credentials",
        "server/http/test_origins::test_no_other_origin_by_default",
        "server/http/test_origins::test_all_origins_are_told_at_start",
        "server/http/test_app::test_only_some_origins",
    ),
    "Pages of origins that `cors` does not allow cannot send": (
        "server/http/test_origins::test_pages_of_other_origins_send_no_updates",
    ),
    "Pages of origins that `cors` does not allow cannot open": (
        "server/streams/publishing/test_intake::test_pages_of_other_origins",
    ),
    "Headers of a client": (
        "test_no_header_of_a_client_is_echoed_raw",
        "server/http/test_request_log::test_request_ids",
    ),
    "Messages of a stream cannot forge": (
        "server/streams/ldes/test_pages::test_messages_cannot_forge_hypermedia",
    ),
    "Messages of a stream cannot enter": (
        "continuous/test_windows::test_a_stream_cannot_write_into_the_window_of_another",
        "continuous/test_windows::test_graphs_of_messages_have_no_reserved_names",
    ),
    "Views of streams show": (
        "server/streams/html/test_views::test_nothing_of_a_message_is_markup",
        "server/streams/html/test_browser::test_hostile_messages",
    ),
    "A token that is": (
        "server/streams/html/test_browser::test_a_token_is_sent_and_not_kept",
        "server/streams/html/test_connections::test_what_is_typed_into_forms_is_there_after_reload_and_back",
    ),
    # Logs are reliable and contain no queries
    "Query texts are only": (
        "test_query_texts_are_not_logged",
        "server/http/test_request_log::test_queries_are_logged_only_on_request",
    ),
    "Input of a client": (
        "test_no_request_writes_a_line_of_its_own",
        "server/http/test_request_log::test_nothing_a_client_sends_starts_a_line",
        "server/http/test_request_log::test_nothing_a_client_sends_starts_a_field",
    ),
    "Metric labels have a fixed": ("server/http/test_metrics::test_aborts_by_reason",),
    "A failed answer never": (
        "server/http/test_sending::test_a_body_that_breaks_off_is_an_error_for_every_client",
        "sparql/sources/http/test_faults::test_text_behind_the_result",
    ),
    # A client cannot deny service to others
    "The size of requests, queries": (
        "server/http/test_app::test_limits",
        "server/http/test_app::test_a_body_that_is_too_long",
    ),
    "Concurrent and waiting requests": (
        "test_busy_is_said_at_once",
        "server/http/test_admission::test_past_the_bounds_is_503",
    ),
    "Malformed parameters, bodies, framing": (
        "server/streams/test_hostile::test_targets",
        "server/streams/test_hostile::test_bodies",
        "server/streams/test_hostile::test_frames_of_followers",
        "server/streams/test_hostile::test_half_a_frame",
    ),
    "A frame of a client": (
        "server/streams/test_hostile::test_frames_that_are_not_masked_at_any_cut",
        "server/streams/test_hostile::test_frames_of_followers",
        "server/streams/publishing/test_intake::test_a_client_that_stops_to_mask_its_frames",
    ),
    "A frame that is": (
        "server/streams/publishing/test_intake::test_a_frame_that_is_too_large",
        "server/streams/publishing/test_intake::test_no_room_for_a_frame",
    ),
    "A gRPC call that names": (
        "server/streams/grpc/test_publishing::test_who_names_no_stream_yet",
        "server/streams/grpc/test_publishing::test_who_never_names_a_stream",
    ),
    "A follower may send": ("server/streams/test_hostile::test_frames_of_followers",),
    "A body that announces": ("server/streams/test_hostile::test_bodies",),
    "A full disk, or": (
        "server/streams/disk/test_full_disk::test_a_full_disk_loses_nothing",
        "server/streams/test_kills::test_kills_lose_nothing",
    ),
    "Readers, publishers and followers": (
        "server/streams/test_bounds::test_slow_readers_keep_others_from_reading_only",
        "server/streams/test_bounds::test_publications_at_once",
        "server/streams/test_bounds::test_bodies_together",
        "server/streams/test_bounds::test_the_memory_of_bodies",
        "server/streams/test_push::test_the_number_of_followers_is_bounded",
    ),
    "The number of registered": (
        "server/streams/test_queries::test_bounds_of_queries",
        "continuous/registered/test_registry::test_a_query_that_fails_is_paused_and_says_why",
    ),
    "A client that reads": (
        "server/http/test_sending::test_a_client_that_takes_nothing_is_let_go",
        "server/streams/test_hostile::test_a_websocket_that_reads_nothing",
        "test_a_request_body_must_arrive_in_time",
    ),
    "The head of a request": ("test_request_heads_must_arrive_in_time",),
    "Request lines over 128": ("test_large_request_heads_are_refused",),
    "A small request cannot": (
        "test_compressed_request_bodies_are_bounded",
        "server/streams/publishing/test_acknowledging::test_few_bytes_of_a_long_log",
        "server/streams/publishing/test_acknowledging::test_a_window_of_zstd_is_bounded",
    ),
    "If a client disconnects, its": (
        "server/http/test_sending::test_a_client_that_leaves_ends_the_body",
        "sparql/sources/http/test_upstream_connections::test_closing_the_body_ends_the_request",
    ),
    "A too deeply nested": ("test_deep_queries_harm_nobody_else",),
    "Other requests are served": (
        "server/runtime/test_threads::test_name_look_up_does_not_wait_for_long_queries",
        "test_fast_path::test_templates_of_many_patterns",
    ),
    "Queries and `Accept` are": (
        "test_queries_are_read_in_linear_time",
        "query/test_service::test_linear_time",
        "rdf/formats/test_negotiation::test_linear_time",
    ),
    "Every request gets an": (
        "server/http/test_requests::test_every_request_is_answered",
        "server/http/test_requests::test_answers_on_one_connection_are_never_mixed_up",
    ),
    "A request whose end": (
        "test_no_second_request_hides_in_a_first",
        "test_what_is_no_http_is_refused",
        "server/http/test_requests::test_what_is_no_http_is_refused_and_the_connection_closed",
    ),
    # A hostile upstream cannot harm the server
    "Too deeply nested results, XML": (
        "test_hostile_results_are_errors",
        "sparql/sources/http/test_upstream_answers::test_what_is_no_answer",
        "server/http/test_requests::test_whatever_an_upstream_says",
    ),
    "RDF/XML fetches no entity": (
        "logs/rdfxml/test_documents::test_an_external_entity_is_an_error",
        "logs/rdfxml/test_documents::test_entities_in_entities_are_bounded",
        "logs/rdfxml/test_documents::test_a_namespace_that_makes_much_is_bounded",
        "logs/rdfxml/test_rdfxml::test_hostile_documents_are_refused_at_once",
    ),
    "A compressed answer takes": (
        "test_a_compressed_answer_takes_bounded_memory",
        "test_hostile_results_are_errors",
    ),
    "The time to read": ("sparql/results/test_work::test_twice_as_much_costs_twice_as_much",),
    "Other endpoints and health": (
        "test_a_hostile_result_holds_up_nobody_else",
        "sparql/sources/http/test_faults::test_the_event_loop_has_its_turn",
    ),
    "An error document quotes": ("sparql/sources/http/test_fault_table::test_every_fault",),
    "Rate limits of an": (
        "sparql/sources/http/test_upstream_connections::test_a_rate_makes_requests_wait_their_turn",
        "sparql/sources/http/test_upstream_connections::test_a_refusal_for_longer_is_relayed_at_once",
    ),
    # A server of streams cannot harm clients
    "Descriptions and redirects cannot": (
        "feeds/test_subscribe::test_hostile_servers",
        "feeds/test_cases::test_events_whose_context_is_in_a_header",
    ),
    "The memory for an": (
        "feeds/http/sse/test_event_stream::test_an_event_without_end_is_refused",
        "feeds/test_subscribe::test_messages_that_are_too_large",
        "feeds/http/ldes/test_ldes_failures::test_pages_that_are_none",
    ),
    "Relations, views and lists": (
        "feeds/http/ldes/test_ldes_failures::test_hostile_relations",
        "feeds/http/ldes/test_ldes_failures::test_other_origins",
        "feeds/http/inbox/test_inbox::test_other_origins",
    ),
    "A page is read": ("feeds/http/ldes/test_ldes_failures::test_many_relations",),
    # Authorization
    "Nothing of a protected": (
        "server/http/access/test_jwt::test_nothing_is_read_without_a_token",
        "server/http/access/test_jwt::test_where_a_token_may_stand",
    ),
    "A JSON Web Token": (
        "server/http/access/test_jwt::test_signatures_that_prove_nothing",
        "server/http/access/test_jwt::test_claims_that_are_wrong",
    ),
    "No answer outlives its": (
        "server/http/access/test_expiry::test_each_answer_ends_with_its_token",
    ),
    "Tokens with unknown keys": (
        "server/http/access/test_jwt::test_keys_that_rotate",
        "server/http/access/test_jwt::test_the_cache_of_keys",
    ),
    "A description of a stream": (
        "server/http/access/test_jwt::test_a_stream_names_only_policies_of_the_settings",
    ),
    "The secret of a client": (
        "sparql/client/test_oauth::test_wrong_credentials",
        "sparql/client/test_oauth::test_no_secret_goes_over_plain_http",
        "server/runtime/test_access_settings::test_a_proxy_with_client_credentials",
    ),
}
