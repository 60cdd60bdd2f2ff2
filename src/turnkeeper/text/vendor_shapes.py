"""Vendor shapes: the patterns of vendors' keys."""

import re
from collections.abc import Iterator
from typing import Final

from turnkeeper.text.shape import API_KEY, TOKEN, Found, after, vendor, vendors

VENDOR_SHAPES: Final = (
    vendor("sk-", r"(?:ant-|proj-|svcacct-|admin-|or-v1-|or-|lf-|kimi-)?[A-Za-z0-9_-]{18,}"),
    vendor("AIza", r"[0-9A-Za-z_-]{30,}"),
    vendor("gsk_", r"[A-Za-z0-9]{20,}"),
    vendor("xai-", r"[A-Za-z0-9]{20,}"),
    vendor("hf_", r"[A-Za-z0-9]{20,}"),
    vendor("pplx-", r"[A-Za-z0-9]{20,}"),
    vendor("nvapi-", r"[A-Za-z0-9_-]{20,}"),
    vendor("csk-", r"[A-Za-z0-9]{20,}"),
    vendor("r8_", r"[A-Za-z0-9]{20,}"),
    vendor("tvly-", r"[A-Za-z0-9-]{16,}"),
    vendor("fw_", r"[A-Za-z0-9]{20,}"),
    vendor("github_pat_", r"[A-Za-z0-9_]{22,}"),
    vendors("ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{20,}"),
    vendors("glpat- glptt- gldt- glrt- glcbt- glsoat- glft- glimt- glagent-", r"gl[a-z]{2,5}-[A-Za-z0-9_.-]{16,}"),
    vendors("xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs- xapp-", r"x[a-z]{3}-[A-Za-z0-9-]{10,}", TOKEN),
    vendors("akia asia abia acca", r"A(?:KIA|SIA|BIA|CCA)[0-9A-Z]{16}(?![A-Za-z0-9])"),
    vendors("sk_live_ sk_test_ rk_live_ rk_test_ pk_live_ pk_test_", r"[srp]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    vendor("whsec_", r"[A-Za-z0-9+/=]{20,}"),
    vendor("SG.", r"[\w-]{16,}\.[\w-]{16,}"),
    vendor("npm_", r"[A-Za-z0-9]{30,}"),
    vendor("pypi-", r"[A-Za-z0-9_-]{50,}"),
    vendors("dop_v1_ doo_v1_ dor_v1_", r"do[por]_v1_[a-f0-9]{40,}"),
    vendors("shpat_ shpca_ shppa_ shpss_", r"shp[a-z]{2}_[a-fA-F0-9]{32}"),
    vendor("dapi", r"[a-f0-9]{32}(?:-\d)?"),
    vendors("hvs. hvb.", r"hv[sb]\.[A-Za-z0-9_-]{20,}", TOKEN),
    vendor("ATATT3x", r"[A-Za-z0-9_=-]{50,}"),
    vendor("ya29.", r"[A-Za-z0-9_-]{20,}", TOKEN),
    vendor("GOCSPX-", r"[A-Za-z0-9_-]{20,}"),
    vendor("dckr_pat_", r"[A-Za-z0-9_-]{20,}"),
    vendor("lin_api_", r"[A-Za-z0-9]{20,}"),
    vendor("figd_", r"[A-Za-z0-9_-]{20,}"),
    vendor("ntn_", r"[A-Za-z0-9]{30,}"),
    vendor("sbp_", r"[a-f0-9]{40}"),
    vendors("dp.pt. dp.st. dp.ct. dp.scim. dp.audit.", r"dp\.[a-z]+\.[A-Za-z0-9.]{30,}", TOKEN),
    vendor("pscale_", r"(?:tkn|oauth|pw)_[\w.-]{20,}"),
    vendors("sntrys_ sntryu_", r"sntry[su]_[A-Za-z0-9+/=_]{30,}", TOKEN),
    vendor("NRAK-", r"[A-Z0-9]{27}"),
    vendor("key-", r"[a-f0-9]{32}(?![a-f0-9])"),
    vendor("tskey-", r"[a-z]+-[A-Za-z0-9-]{16,}"),
    vendors("sq0 eaaa", r"(?:sq0[a-z]{3}-[\w-]{22,}|EAAA[\w-]{56,})"),
    vendor("eyJ", r"[A-Za-z0-9_-]{8,}\.(?:eyJ)?[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)*", TOKEN),
    vendor("v1.0-", r"[a-f0-9]{24}-[a-f0-9]{100,}"),
    vendor("PMAK-", r"[a-f0-9]{24}-[a-f0-9]{30,}"),
    vendors("fo1_ fm1_ fm1r_ fm2_", r"f(?:o1|m1|m1r|m2)_[A-Za-z0-9+/=_-]{30,}"),
    vendor("CFPAT-", r"[\w-]{30,}"),
    vendor("ATBB", r"[A-Za-z0-9]{28,}"),
    vendor("ATCTT3x", r"[A-Za-z0-9_=-]{50,}"),
    vendors("nfp_ nfc_ nfo_ nfu_ nfb_", r"nf[pcoub]_[A-Za-z0-9]{30,}"),
    vendor("sl.", r"(?:u\.)?[A-Za-z0-9_-]{60,}", TOKEN),
    vendor("rubygems_", r"[a-f0-9]{40,}"),
    vendor("LTAI", r"[A-Za-z0-9]{12,24}(?![A-Za-z0-9])"),
    vendor("pul-", r"[a-f0-9]{40}"),
    vendor("glsa_", r"[A-Za-z0-9]{32}_[a-fA-F0-9]{8}"),
    vendor("glc_", r"[A-Za-z0-9+/=]{32,}"),
    vendor("sb_secret_", r"[\w-]{20,}"),
    vendor("SK", r"[a-f0-9]{32}(?![A-Za-z0-9])"),
    vendor("cio", r"[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    vendor("1//0", r"[\w-]{40,}", TOKEN),
    vendor("HRKU-", r"[\w-]{30,}"),
    vendors("squ_ sqp_ sqa_", r"sq[upa]_[a-f0-9]{40}"),
    vendor("secret_", r"[A-Za-z0-9]{40,}(?![A-Za-z0-9_])"),
    vendor("pat", r"[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    vendor("FwoGZXIvYXdz", r"[A-Za-z0-9+/=]{60,}", TOKEN),
    vendor("IQoJb3JpZ2lu", r"[A-Za-z0-9+/=_]{60,}", TOKEN),
    after("hooks.slack.com/", r"hooks\.slack\.com/\w+/(?P<v>[A-Za-z0-9/]{20,})", TOKEN, bool),
    after("/api/webhooks/", r"/api/webhooks/(?P<v>\d+/[\w-]{30,})", TOKEN, bool),
    after("/incomingwebhook/", r"/IncomingWebhook/(?P<v>[A-Za-z0-9]{20,}(?:/[\w-]{20,})?)", TOKEN, bool),
    after(":aa", r"(?<=\d{8}):(?P<v>AA[A-Za-z0-9_-]{32,})", TOKEN, bool),
)

_BACKWARDS: Final = (
    (API_KEY, "8q~", re.compile(r"(?<![\w~.-])[\w~.-]{3}8Q~[\w~.-]{30,}")),
    (API_KEY, "nral", re.compile(r"(?<![A-Za-z0-9])[a-f0-9]{36}NRAL(?![A-Za-z0-9])")),
    (API_KEY, "-us", re.compile(r"(?<![A-Za-z0-9])[a-f0-9]{32}-us\d{1,2}(?![A-Za-z0-9])")),
    (API_KEY, "", re.compile(r"(?<![A-Za-z0-9-])[a-f0-9]{32}-[a-f0-9]{8}-[a-f0-9]{8}(?![A-Za-z0-9-])")),
    (TOKEN, ".atlasv1.", re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]{14}\.atlasv1\.[\w-]{40,}")),
    (TOKEN, ":apa91b", re.compile(r"(?<!\w)AAAA[\w-]{7}:APA91b[\w-]{80,}")),
    (TOKEN, ".", re.compile(r"(?<![\w.])[MNO][A-Za-z0-9_-]{23,27}\.[\w-]{6}\.[\w-]{27,40}(?![\w-])")),
)
"""Keys that do not begin with a fixed prefix: kind, what must occur in the text in lower case, and the pattern."""


def keys_without_prefix(text: str, lower: str) -> Iterator[Found]:
    """Keys of vendors that do not begin with a fixed prefix."""
    for kind, hint, pattern in _BACKWARDS:
        if hint in lower:
            yield from (Found(match.start(), match.end(), kind) for match in pattern.finditer(text))
