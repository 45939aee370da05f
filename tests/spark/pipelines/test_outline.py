"""Reading names and sources out of the text of a plan."""

from __future__ import annotations

from ottla.spark.pipelines.outline import Reads, reads_of

PLAN = """== Parsed Logical Plan ==
'Project [unresolvedalias('count(1))]
+- 'UnresolvedRelation [v2], [], true

== Analyzed Logical Plan ==
count(1): bigint
~Join Inner
:- ~SubqueryAlias v2
:  +- View (`v2`, [key#0])
:     +- ~Project [key#0]
:        +- ~SubqueryAlias orders
:           +- View (`orders`, [key#0])
:- ~SubqueryAlias spark_catalog.default.t1
:  +- StreamingRelation FileSource[file:/x], [v#43], name=<Unassigned>
+- ~SubqueryAlias p
   +- ~StreamingRelationV2 org.apache.A@1, ottla, org.apache.B@2, [subscribe=a,b, kafka.client.id=h,i], [key#0], name=x

== Optimized Logical Plan ==
~SubqueryAlias orders
"""


def test_nearest_names_and_own_sources_are_found() -> None:
    assert reads_of(PLAN, {"v2", "orders", "t1"}) == Reads(
        ("v2", "t1"), (("ottla", {"subscribe": "a,b", "kafka.client.id": "h,i"}),)
    )


def test_names_that_are_not_of_the_pipeline_are_looked_through() -> None:
    assert reads_of(PLAN, {"orders"}).names == ("orders",)
